import { describeDeadlock } from '../../../kernel/api/errors.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { groupName, type Instance, totalsOf, unlistedIn } from '../../views/roll.js';
import { type Blocked, blockedLately, blockedNow, deadHolders, longestWaits } from '../../views/waits.js';
import type { Completeness, CONSOLE_SCHEMA, ConsoleBodies, DeadlockSeen, InstanceRow } from '../bodies.js';
import { contains, listed, type Query } from './query.js';
import type { SnapshotCache } from './source.js';

/** A body before its version and its service are added. */
export type Content<K extends keyof ConsoleBodies> = Omit<ConsoleBodies[K], 'schemaVersion' | 'service'> & {
  readonly schemaVersion?: typeof CONSOLE_SCHEMA;
};

const MAX_NAMED = 20;
const TOP = 5;
const MAX_CELLS = 50;

function completenessOf(roll: FleetReport): Completeness {
  const { completeness, instances, asked, silent, unreadable } = roll;
  // Where Redis does not say who is connected, it says how many there are.
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

/** What a view made of a roll call begins with. */
export function rollBody(roll: FleetReport): { readonly at: number; readonly fleet: Completeness } {
  return { at: roll.askedAt, fleet: completenessOf(roll) };
}

export async function showNow(looks: SnapshotCache): Promise<Content<'now'>> {
  const [roll, { health, mayOnlyLook }, jobs] = await Promise.all([
    looks.roll(),
    looks.health(),
    looks.source.jobs ? looks.jobs() : undefined,
  ]);
  const { askedAt, instances } = roll;
  const waits = longestWaits(roll, TOP);
  const dead = deadHolders(roll);
  const deaf = instances.filter(({ hearing }) => !hearing).map(({ instanceId }) => instanceId);
  const problems = mayOnlyLook ? health.problems.filter(({ code }) => code !== 'NOPERM') : health.problems;
  return {
    ...rollBody(roll),
    redis: {
      status: mayOnlyLook ? 'notTried' : health.status,
      topology: health.topology,
      roundTripMs: mayOnlyLook ? null : health.roundTripMs,
      problems: problems.map(({ code, message }) => ({ code, message })),
    },
    ...totalsOf(roll),
    oldestWaitSince: waits[0] ? askedAt - waits[0].waitedMs : null,
    lastMinute: lastMinuteOf(instances),
    deaf: deaf.slice(0, MAX_NAMED),
    deafCount: deaf.length,
    blockers: topBlockers(roll),
    longestWaits: waits.map(({ instanceId, call, resource, waitedMs, group, callSite, heldBy }) => ({
      key: `${instanceId} ${call}`,
      resource,
      since: askedAt - waitedMs,
      instanceId,
      group: groupName(group),
      ...(callSite !== undefined && { callSite }),
      ...(heldBy !== undefined && { heldBy }),
    })),
    deadHolders: dead.slice(0, TOP).map(({ resource, fencingToken, instanceId, ttlMs }) => ({
      key: `${fencingToken} ${resource}`,
      resource,
      instanceId,
      until: askedAt + ttlMs,
    })),
    deadHolderCount: dead.length,
    deadlocks: deadlocksSeen(roll),
    leaders: new Set(
      instances.flatMap(({ leaderships }) => leaderships.flatMap(({ name, isLeader }) => (isLeader ? [name] : []))),
    ).size,
    jobs: jobs
      ? {
          known: jobs.length,
          running: jobs.filter(({ job }) => job.running).length,
          paused: jobs.filter(({ job }) => job.pause).length,
          missed: jobs.filter(({ job }) => job.missed > 0).length,
        }
      : null,
  };
}

function lastMinuteOf(instances: readonly Instance[]): ConsoleBodies['now']['lastMinute'] {
  const counts = instances.flatMap(({ lastMinute }) => (lastMinute ? [lastMinute] : []));
  if (counts.length === 0) return null;
  const sum = (of: 'acquired' | 'notAcquired' | 'lost'): number => counts.reduce((all, each) => all + each[of], 0);
  return {
    forMs: Math.min(...counts.map(({ forMs }) => forMs)),
    acquired: sum('acquired'),
    notAcquired: sum('notAcquired'),
    lost: sum('lost'),
  };
}

/** By the group that was waited for. */
function topBlockers(roll: FleetReport): ConsoleBodies['now']['blockers'] {
  const byHolder = new Map<string, Blocked[]>();
  for (const each of blockedLately(roll)) byHolder.set(each.holder, [...(byHolder.get(each.holder) ?? []), each]);
  const sum = (all: readonly Blocked[], of: 'waitedMs' | 'calls'): number => all.reduce((a, each) => a + each[of], 0);
  return [...byHolder]
    .map(([holder, all]) => ({
      holder: groupName(holder),
      waitedMs: sum(all, 'waitedMs'),
      calls: sum(all, 'calls'),
      waiters: all.slice(0, TOP).map(({ waiter }) => groupName(waiter)),
    }))
    .sort((a, b) => b.waitedMs - a.waitedMs)
    .slice(0, TOP);
}

function deadlocksSeen({ deadlocks }: FleetReport): DeadlockSeen[] {
  return deadlocks.slice(0, MAX_NAMED).map((calls) => ({
    sentence: describeDeadlock(calls, quote(calls[0]!.instanceId)),
    resources: calls.map(({ holds }) => holds),
  }));
}

export async function showBlockers(looks: SnapshotCache): Promise<Content<'blockers'>> {
  const roll = await looks.roll();
  const cells = blockedLately(roll);
  return {
    ...rollBody(roll),
    cells: cells.slice(0, MAX_CELLS).map(cellOf),
    cellCount: cells.length,
    now: blockedNow(roll).slice(0, MAX_CELLS).map(cellOf),
    isCounting: roll.instances.some(({ lastMinute }) => lastMinute !== null),
    deadlocks: deadlocksSeen(roll),
  };
}

function cellOf({ waiter, holder, waitedMs, calls }: Blocked): Blocked {
  return { waiter: groupName(waiter), holder: groupName(holder), waitedMs: Math.round(waitedMs), calls };
}

const STOOD_STILL_MS = 1_000;

export async function showInstances(looks: SnapshotCache, query: Query): Promise<Content<'instances'>> {
  const filter = query.text('filter').toLowerCase();
  const state = query.oneOf('state', ['all', 'trouble']);
  const { by, isDescending } = query.sort(['instance', 'version', 'started', 'loop', 'held', 'waiting']);
  const limit = query.limit(100);
  const roll = await looks.roll();
  const rows = [
    ...roll.instances.map((each) => instanceRow(each, roll.askedAt)),
    ...roll.silent.map((instanceId): InstanceRow => ({ instanceId, state: 'silent' })),
  ].filter((row) => {
    return contains(filter, row.instanceId, row.version) && (state === 'all' || isTroubled(row));
  });
  const keys = {
    instance: ({ instanceId }: InstanceRow) => instanceId,
    version: ({ version }: InstanceRow) => version,
    started: ({ startedAt }: InstanceRow) => startedAt,
    loop: ({ loopDelayMs }: InstanceRow) => loopDelayMs,
    held: ({ held }: InstanceRow) => held,
    waiting: ({ waiting }: InstanceRow) => waiting,
  };
  return { ...rollBody(roll), ...listed(rows, { by: keys[by], isDescending }, limit, (row) => row) };
}

function instanceRow(instance: Instance, askedAt: number): InstanceRow {
  const { instanceId, health, version, uptimeMs, loopDelayMs, blockedMs, hearing, more, lastMinute } = instance;
  return {
    instanceId,
    state: health,
    version,
    startedAt: askedAt - uptimeMs,
    loopDelayMs,
    blockedMs,
    hearing,
    held: instance.held.length + more.held,
    waiting: instance.waiting.length + more.waiting,
    leads: instance.leaderships.flatMap(({ name, isLeader }) => (isLeader ? [name] : [])),
    jobs: instance.jobs.length + more.jobs,
    ...(lastMinute && { acquired: lastMinute.acquired }),
  };
}

function isTroubled({ state, hearing = true, blockedMs = 0 }: InstanceRow): boolean {
  return state !== 'up' || !hearing || blockedMs > STOOD_STILL_MS;
}
