import type { Holder } from '../../../kernel/api/holder.js';
import { lifeOf } from '../../../features/fleet/core/roll/life.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { groupName } from '../../views/roll.js';
import {
  holderInRedis,
  locksIn,
  type FleetHolder,
  type FleetLock,
} from '../../../features/fleet/core/roll/locks-in.js';
import { heldRow, labelText, type LockRow, lockRows, troubleOf } from '../../views/locks.js';
import { conclusionOn } from '../../views/why.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import type { LockState } from '../../../kernel/store/lock-state.js';
import type { ConsoleBodies } from '../bodies.js';
import { type Content, rollBody } from './fleet-views.js';
import { contains, type Query } from './query.js';
import type { SnapshotCache } from './source.js';

const MAX_GROUPS = 200;
const MAX_LISTED = 100;

/** The rows of a roll call are made once, for all viewers: those in the worst trouble first. */
const rowsOfRoll = new WeakMap<FleetReport, readonly LockRow[]>();

export async function showLocks(looks: SnapshotCache, query: Query): Promise<Content<'locks'>> {
  const text = query.text('filter');
  const group = query.text('group', '', 512);
  const state = query.oneOf('state', ['all', 'held', 'waited', 'trouble']);
  const list = query.list<LockRow>(KEYS, 100);
  const roll = await looks.roll();
  const filter = text.toLowerCase();
  const rows = (await rowsFor(looks, roll, text)).filter(
    (row) =>
      contains(filter, row.resource, row.instanceId, row.group, row.callSite, row.label) &&
      (group === '' || row.group === group) &&
      isIn(state, row),
  );
  return { ...rollBody(roll), ...list(rows), groups: groupsOf(rowsByTrouble(roll)) };
}

const KEYS = {
  trouble: troubleOf,
  resource: 'resource',
  since: 'since',
  until: 'until',
  waiters: 'waiters',
  wait: 'oldestWaitSince',
  instance: 'instanceId',
  group: 'group',
} as const;

function isIn(state: 'all' | 'held' | 'waited' | 'trouble', { life, waiters, fencingToken }: LockRow): boolean {
  if (state === 'held') return fencingToken !== undefined;
  if (state === 'waited') return waiters > 0;
  return state === 'all' || (life !== 'alive' && life !== 'released');
}

/** If the instances have more than they can list, asks once more, for names that begin with the filter. */
async function rowsFor(looks: SnapshotCache, roll: FleetReport, filter: string): Promise<readonly LockRow[]> {
  const rows = rowsByTrouble(roll);
  const about = await looks.rollAbout(filter);
  if (about === roll) return rows;
  const found = rowsByTrouble(about);
  const names = new Set(found.map(({ key }) => key));
  return [...found, ...rows.filter(({ key }) => !names.has(key))];
}

export function rowsByTrouble(roll: FleetReport): readonly LockRow[] {
  const known = rowsOfRoll.get(roll);
  if (known) return known;
  const rows = lockRows(roll).sort((a, b) => troubleOf(a) - troubleOf(b));
  rowsOfRoll.set(roll, rows);
  return rows;
}

function groupsOf(rows: readonly LockRow[]): string[] {
  const groups = new Set(rows.flatMap(({ group }) => (group === undefined ? [] : [group])));
  return [...groups].sort().slice(0, MAX_GROUPS);
}

export async function showLock(looks: SnapshotCache, query: Query): Promise<Content<'lock'>> {
  const resource = query.name('resource');
  const [roll, { at, seen, before }] = await Promise.all([looks.rollAbout(resource), looks.explain(resource)]);
  const { state, cause, sentences } = seen;
  const { holders: known = [], waits = [] } = locksIn(roll).get(resource) ?? {};
  const calls = callsIn(waits, state, roll.askedAt);
  const holders = state.holders.slice(0, MAX_LISTED).map((holder) => ({
    ...heldRow(holderOf(holder, known, roll), resource, at),
    ...(holder.isKept && { life: 'released' as const }),
    label: labelText(holder) || undefined,
    leaseMs: holder.leaseMs,
    conclusion: before && conclusionOn(holder, before.state, resource, roll),
  }));
  return {
    ...rollBody(roll),
    at,
    resource,
    mode: state.mode ?? 'free',
    cause,
    sentences,
    holders,
    holderCount: state.holders.length,
    calls: calls.slice(0, MAX_LISTED),
    callCount: calls.length,
    permits: state.permits,
  };
}

/** The holder in Redis, with the work that its instance reports. */
function holderOf(holder: Holder, seen: readonly FleetHolder[], roll: FleetReport): FleetHolder {
  const { instanceId, fencingToken, heldMs, ttlMs: leftMs } = holder;
  const tick = fencingTickOf(fencingToken);
  const known = seen.find((each) => each.instanceId === instanceId && fencingTickOf(each.fencingToken) === tick);
  return known ? { ...known, fencingToken, heldMs, leftMs } : holderInRedis(holder, lifeOf(holder, roll));
}

/** The oldest first, and then what only Redis knows. */
function callsIn(waits: FleetLock['waits'], { waiters }: LockState, askedAt: number): ConsoleBodies['lock']['calls'] {
  const answered = new Set(waits.map(({ instanceId }) => instanceId));
  const unheard = waiters.flatMap((waiter, place) => {
    const { instanceId, mode } = waiter;
    if (answered.has(instanceId)) return [];
    return { key: `${instanceId} queue ${place}`, instanceId, mode, label: labelText(waiter) || undefined };
  });
  const calls = waits.map(({ instanceId, call, mode, waitedMs, group, callSite, holds }) => ({
    key: `${instanceId} ${call}`,
    instanceId,
    mode,
    since: askedAt - waitedMs,
    group: groupName(group),
    callSite,
    holds: holds.map((each) => each.resource),
  }));
  return [...calls.sort((a, b) => a.since - b.since), ...unheard];
}

export async function showLeaders(looks: SnapshotCache, query: Query): Promise<Content<'leaders'>> {
  const filter = query.text('filter').toLowerCase();
  const list = query.list<ConsoleBodies['leaders']['rows'][number]>({ name: 'name' }, 200);
  const [roll, { at, all }] = await Promise.all([looks.roll(), looks.leaderships()]);
  const rows = all
    .filter(({ name, leader }) => contains(filter, name, leader))
    .map(({ leadsForMs, ttlMs, ...row }) => ({
      ...row,
      since: leadsForMs === undefined ? undefined : at - leadsForMs,
      until: ttlMs === undefined ? undefined : at + ttlMs,
    }));
  return { ...rollBody(roll), at, ...list(rows) };
}
