import { type Holder, namedGroup } from '../../kernel/api/holder.js';
import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import { isWell, locksIn, type SeenHolder, type SeenLock } from '../../features/fleet/core/roll/seen-locks.js';

/** A lease, or a resource without a holder that calls wait for. */
export interface ListedLease {
  readonly lock: SeenLock;
  readonly lease?: SeenHolder;
}

/** Everything that is held or waited for, by resource. */
export function leasesIn(roll: FleetReport): ListedLease[] {
  const locks = [...locksIn(roll).values()].sort((a, b) => (a.resource < b.resource ? -1 : 1));
  return locks.flatMap((lock) => (lock.holders.length > 0 ? lock.holders.map((lease) => ({ lock, lease })) : { lock }));
}

/** Returns a number by which the lock in the worst trouble is the first: waited for, then in a bad state, then old. */
export function troubleOf({ lock: { waits, oldestWaitMs }, lease }: ListedLease): number {
  const isBad = lease !== undefined && !isWell(lease);
  const ageMs = waits.length > 0 ? oldestWaitMs : (lease?.heldMs ?? 0);
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
