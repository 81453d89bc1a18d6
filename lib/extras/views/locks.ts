import { type Holder, namedGroup } from '../../kernel/api/holder.js';
import type { LockMode } from '../../kernel/api/lock-mode.js';
import { fencingTickOf } from '../../kernel/store/fencing-token.js';
import type { LockState } from '../../kernel/store/lock-state.js';
import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import { holderInRedis, isWell, locksIn, type FleetHolder } from '../../features/fleet/core/roll/locks-in.js';
import { groupName } from './roll.js';
import type { LockLife } from './words.js';

/** A lease, or a resource without a holder for which calls wait. */
export interface LockRow {
  /** The same lease has the same key in the next answer. */
  readonly key: string;
  readonly resource: string;
  readonly mode: LockMode | 'free';
  readonly life: LockLife;
  readonly instanceId?: string;
  /** The group of the call; `everything else` for calls without one. */
  readonly group?: string;
  readonly callSite?: string;
  /** The label of the call in words, as Redis has it. */
  readonly label?: string;
  readonly fencingToken?: number;
  readonly since?: number;
  /** When the lease ends unless it is renewed. A later answer with a later time: it was renewed. */
  readonly until?: number;
  readonly waiters: number;
  readonly oldestWaitSince?: number;
}

type Waiting = Pick<LockRow, 'waiters' | 'oldestWaitSince'>;

/** Everything that is held or waited for, by resource: a lock with several holders once for each of them. */
export function lockRows(roll: FleetReport): LockRow[] {
  const { askedAt: at } = roll;
  const locks = [...locksIn(roll).values()].sort((a, b) => (a.resource < b.resource ? -1 : 1));
  return locks.flatMap(({ resource, holders, waits, oldestWaitMs }) => {
    const waiting = { waiters: waits.length, ...(waits.length > 0 && { oldestWaitSince: at - oldestWaitMs }) };
    return rowsOf(resource, holders, at, waiting);
  });
}

/** The same for one lock, if the instances cannot be asked. */
export function lockRowsInRedis({ resource, holders, waiters }: LockState, at: number): LockRow[] {
  const held = holders.map((each) => holderInRedis(each, 'unknown'));
  return rowsOf(resource, held, at, { waiters: waiters.length });
}

function rowsOf(resource: string, holders: readonly FleetHolder[], at: number, waiting: Waiting): LockRow[] {
  if (holders.length === 0) return [{ key: resource, resource, mode: 'free', life: 'noHolder', ...waiting }];
  return holders.map((holder) => ({ ...heldRow(holder, resource, at), ...waiting }));
}

export function heldRow(holder: FleetHolder, resource: string, at: number) {
  const { instanceId, life, mode, fencingToken, heldMs, leftMs } = holder;
  const key = `${fencingTickOf(fencingToken)} ${instanceId} ${resource}`;
  const times = { since: at - heldMs, until: at + leftMs };
  return { key, resource, mode, life, instanceId, ...workIn(holder), fencingToken, ...times };
}

/** What its instance reports, or the label that Redis has. */
function workIn({ holder, group, callSite }: FleetHolder): Pick<LockRow, 'group' | 'callSite' | 'label'> {
  return holder ? { label: labelText(holder) || undefined } : { group: groupName(group!), callSite };
}

/** Returns a number by which the lock in the worst trouble is the first: waited for, then in a bad state, then old. */
export function troubleOf(row: LockRow): number {
  const { waiters, oldestWaitSince, fencingToken, since } = row;
  const isBad = fencingToken !== undefined && !isWell(row);
  return -((waiters > 0 ? 2 : 0) + (isBad ? 1 : 0)) * 1e13 + (oldestWaitSince ?? since ?? 0);
}

/** The label of a holder in words. */
export function labelText({ label, isKept, isHandedOn }: Pick<Holder, 'label' | 'isKept' | 'isHandedOn'>): string {
  if (isKept) return 'released, kept by minHoldMs';
  if (isHandedOn) return 'passed on inside that process';
  if (!label) return '';
  const { group, traceparent: _, ...others } = label;
  const texts = Object.entries(others).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [namedGroup(group) ?? [], ...texts].flat().join(', ');
}
