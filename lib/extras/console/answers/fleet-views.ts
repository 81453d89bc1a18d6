import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { deadlockSentences } from '../../../features/fleet/core/findings/lock-findings.js';
import { type InstanceRow, instanceRows } from '../../views/instances.js';
import { groupName, unlistedIn } from '../../views/roll.js';
import { type Blocked, blockedLately, blockedNow } from '../../views/waits.js';
import type { Completeness, CONSOLE_SCHEMA, ConsoleBodies } from '../bodies.js';
import { contains, type Query } from './query.js';
import type { SnapshotCache } from './source.js';

/** A body before its version and its service are added. */
export type Content<K extends keyof ConsoleBodies> = Omit<ConsoleBodies[K], 'schemaVersion' | 'service'> & {
  readonly schemaVersion?: typeof CONSOLE_SCHEMA;
};

const MAX_NAMED = 20;
const MAX_CELLS = 50;

export function completenessOf(roll: FleetReport): Completeness {
  const { completeness, instances, asked, silent, unreadable } = roll;
  // Redis may count the instances without listing them.
  const unheard = (asked ?? 0) - instances.length - unreadable;
  const unlisted = unlistedIn(roll);
  return {
    completeness,
    heard: instances.length,
    asked,
    silent: silent.slice(0, MAX_NAMED),
    silentCount: Math.max(silent.length, unheard),
    unreadable,
    unlistedHeld: unlisted.held,
    unlistedWaiting: unlisted.waiting,
  };
}

/** The fields that each view of a roll call has. */
export function rollBody(roll: FleetReport): { readonly at: number; readonly fleet: Completeness } {
  return { at: roll.askedAt, fleet: completenessOf(roll) };
}

export async function showBlockers(looks: SnapshotCache): Promise<Content<'blockers'>> {
  const roll = await looks.roll();
  const cells = blockedLately(roll);
  const cycles = roll.deadlocks.slice(0, MAX_NAMED);
  const sentences = deadlockSentences(cycles, roll);
  return {
    ...rollBody(roll),
    cells: cells.slice(0, MAX_CELLS).map(cellOf),
    cellCount: cells.length,
    now: blockedNow(roll).slice(0, MAX_CELLS).map(cellOf),
    isCounting: roll.instances.some(({ lastMinute }) => lastMinute !== null),
    deadlocks: cycles.map((calls, index) => ({
      sentences: sentences[index]!,
      resources: calls.map(({ holds }) => holds),
    })),
  };
}

function cellOf({ waiter, holder, waitedMs, calls }: Blocked): Blocked {
  return { waiter: groupName(waiter), holder: groupName(holder), waitedMs: Math.round(waitedMs), calls };
}

const STOOD_STILL_MS = 1_000;

export async function showInstances(looks: SnapshotCache, query: Query): Promise<Content<'instances'>> {
  const filter = query.text('filter').toLowerCase();
  const state = query.oneOf('state', ['all', 'trouble']);
  const list = query.list<InstanceRow>(KEYS, 100);
  const roll = await looks.roll();
  const rows = instanceRows(roll).filter((row) => {
    return contains(filter, row.instanceId, row.version) && (state === 'all' || isTroubled(row));
  });
  return { ...rollBody(roll), ...list(rows) };
}

const KEYS = {
  instance: 'instanceId',
  version: 'version',
  started: 'startedAt',
  loop: 'loopDelayMs',
  held: 'held',
  waiting: 'waiting',
} as const;

function isTroubled({ state, hearing = true, blockedMs = 0 }: InstanceRow): boolean {
  return state !== 'up' || !hearing || blockedMs > STOOD_STILL_MS;
}
