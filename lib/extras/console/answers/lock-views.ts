import type { Holder } from '../../../kernel/api/holder.js';
import { lifeOf } from '../../../features/fleet/core/roll/life.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { groupName } from '../../views/roll.js';
import { locksIn, type SeenHolder, type SeenLock } from '../../../features/fleet/core/roll/seen-locks.js';
import { labelText, leasesIn, type ListedLease, troubleOf } from '../../views/locks.js';
import { conclusionOn } from '../../views/why.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import type { ConsoleBodies, LockHolder, LockRow, LockWaiting } from '../bodies.js';
import { type Content, rollBody } from './fleet-views.js';
import { contains, type Query } from './query.js';
import type { SnapshotCache } from './source.js';

const MAX_GROUPS = 200;
const MAX_LISTED = 100;

/** By which the row in the worst trouble is the first. */
const troubles = new WeakMap<LockRow, number>();
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
  trouble: (row: LockRow) => troubles.get(row),
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
  const rows = leasesIn(roll).map((seen) => {
    const row = rowOf(seen, roll.askedAt);
    troubles.set(row, troubleOf(seen));
    return row;
  });
  rows.sort((a, b) => troubles.get(a)! - troubles.get(b)!);
  rowsOfRoll.set(roll, rows);
  return rows;
}

function rowOf({ lock: { resource, waits, oldestWaitMs }, lease }: ListedLease, at: number): LockRow {
  const waiting = { waiters: waits.length, ...(waits.length > 0 && { oldestWaitSince: at - oldestWaitMs }) };
  if (!lease) return { key: resource, resource, mode: 'free', life: 'noHolder', ...waiting };
  const { instanceId, life, mode, fencingToken, heldMs, leftMs } = lease;
  return {
    key: `${fencingTickOf(fencingToken)} ${resource}`,
    resource,
    mode,
    life,
    instanceId,
    ...workIn(lease),
    fencingToken,
    since: at - heldMs,
    until: at + leftMs,
    ...waiting,
  };
}

/** What its instance reports, or the label that Redis has. */
function workIn({ holder, group, callSite }: SeenHolder): Pick<LockRow, 'group' | 'callSite' | 'label'> {
  return holder ? { label: labelText(holder) || undefined } : { group: groupName(group!), callSite };
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
  const calls = callsIn(waits, roll.askedAt);
  const holders = state.holders.slice(0, MAX_LISTED).map((holder) => ({
    ...holderOf(holder, known, roll, at),
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
    queue: state.waiters.slice(0, MAX_LISTED).map((waiter, index) => {
      const { instanceId, mode, permits } = waiter;
      const { since, group, callSite } = calls.find((each) => each.instanceId === instanceId) ?? {};
      const label = labelText(waiter) || undefined;
      return { key: `${instanceId} ${index}`, instanceId, mode, permits, label, since, group, callSite };
    }),
    queueCount: state.waiters.length,
    calls: calls.slice(0, MAX_LISTED),
    callCount: calls.length,
    permits: state.permits,
  };
}

function holderOf(holder: Holder, seen: readonly SeenHolder[], roll: FleetReport, at: number): LockHolder {
  const { instanceId, mode, fencingToken, heldMs, ttlMs, leaseMs, depth, permits, isKept } = holder;
  const tick = fencingTickOf(fencingToken);
  const known = seen.find((each) => each.instanceId === instanceId && fencingTickOf(each.fencingToken) === tick);
  return {
    key: `${tick} ${instanceId}`,
    instanceId,
    life: isKept ? 'released' : (known?.life ?? lifeOf(holder, roll)),
    mode,
    fencingToken,
    since: at - heldMs,
    until: at + ttlMs,
    leaseMs,
    depth,
    permits,
    ...(known && workIn(known)),
    label: labelText(holder) || undefined,
  };
}

/** The oldest first. */
function callsIn(waits: SeenLock['waits'], askedAt: number): LockWaiting[] {
  const calls = waits.map(({ instanceId, call, mode, waitedMs, group, callSite, holds }) => ({
    key: `${instanceId} ${call}`,
    instanceId,
    mode,
    since: askedAt - waitedMs,
    group: groupName(group),
    callSite,
    holds: holds.map((each) => each.resource),
  }));
  return calls.sort((a, b) => a.since - b.since);
}

export async function showLeaders(looks: SnapshotCache, query: Query): Promise<Content<'leaders'>> {
  const filter = query.text('filter').toLowerCase();
  const list = query.list<ConsoleBodies['leaders']['rows'][number]>({ name: 'name' }, 200);
  const [roll, { at, all }] = await Promise.all([looks.roll(), looks.leaderships()]);
  const rows = all
    .filter(({ name, leader }) => contains(filter, name, leader))
    .map(({ leader, leadsForMs, ttlMs, ...row }) => ({
      ...row,
      instanceId: leader,
      since: leadsForMs === undefined ? undefined : at - leadsForMs,
      until: ttlMs === undefined ? undefined : at + ttlMs,
    }));
  return { ...rollBody(roll), at, ...list(rows) };
}
