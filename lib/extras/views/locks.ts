import { type Holder, namedGroup } from '../../kernel/api/holder.js';
import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import { isWell, locksIn, type FleetLock } from '../../features/fleet/core/roll/locks-in.js';

/** Everything that is held or waited for, by resource: a lock with several holders once for each of them. */
export function locksByHolder(roll: FleetReport): FleetLock[] {
  const locks = [...locksIn(roll).values()].sort((a, b) => (a.resource < b.resource ? -1 : 1));
  return locks.flatMap((lock) =>
    lock.holders.length > 1 ? lock.holders.map((holder) => ({ ...lock, holders: [holder] })) : lock,
  );
}

/** Returns a number by which the lock in the worst trouble is the first: waited for, then in a bad state, then old. */
export function troubleOf({ waits, oldestWaitMs, holders: [holder] }: FleetLock): number {
  const isBad = holder !== undefined && !isWell(holder);
  const ageMs = waits.length > 0 ? oldestWaitMs : (holder?.heldMs ?? 0);
  return -((waits.length > 0 ? 2 : 0) + (isBad ? 1 : 0)) * 1e13 - Math.min(ageMs, 1e12);
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
