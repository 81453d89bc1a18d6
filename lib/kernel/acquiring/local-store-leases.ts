import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LocalHolder, StoreLease } from '../holding/store-lease.js';
import { fencingTickOf } from '../store/fencing-token.js';
import type { LockOwner } from '../store/lock-store.js';

/**
 * The store leases of a queue: nearly always one, which needs no object of its own, and several if the resource can be
 * shared. Of permits it may be thousands, so no operation scans them all.
 */
export type LocalStoreLeases = StoreLease | Set<StoreLease> | undefined;

export function withLease(leases: LocalStoreLeases, added: StoreLease): LocalStoreLeases {
  if (leases === undefined) return added;
  return (leases instanceof Set ? leases : new Set([leases])).add(added);
}

export function withoutLease(leases: LocalStoreLeases, ended: StoreLease): LocalStoreLeases {
  if (!(leases instanceof Set)) return leases === ended ? undefined : leases;
  leases.delete(ended);
  return leases.size === 1 ? firstOf(leases) : leases;
}

export function firstOf(leases: LocalStoreLeases): StoreLease | undefined {
  return leases instanceof Set ? leases.values().next().value : leases;
}

export function hasLease(leases: LocalStoreLeases, storeLease: StoreLease): boolean {
  return leases instanceof Set ? leases.has(storeLease) : leases === storeLease;
}

export function allOf(leases: LocalStoreLeases): Iterable<StoreLease> {
  return leases instanceof Set ? leases : leases === undefined ? [] : [leases];
}

/** Returns the holder of the lease with this token, or of one that counts up from it. */
export function holderOf(leases: LocalStoreLeases, fencingToken: number): LocalHolder | undefined {
  const tick = fencingTickOf(fencingToken);
  const holders = [...allOf(leases)].flatMap((storeLease) => storeLease.holders);
  const meant = holders.filter((holder) => fencingTickOf(holder.fencingToken) === tick);
  return meant.find((holder) => holder.fencingToken === fencingToken) ?? meant[0];
}

export function isHeldBy(leases: LocalStoreLeases, owner: LockOwner): boolean {
  return find(leases, (storeLease) => storeLease.owner === owner) !== undefined;
}

/** Finds one that another reader may share without asking the store. */
export function sharableWith(leases: LocalStoreLeases, options: ResolvedLockOptions): StoreLease | undefined {
  return options.mode === 'read' ? find(leases, (storeLease) => storeLease.mayShareWith(options)) : undefined;
}

/** Returns true if nothing can be granted with these options before this process releases. */
export function excludes(leases: LocalStoreLeases, { mode }: ResolvedLockOptions): boolean {
  // A call that takes a lock for a semaphore asks the store, which refuses it at once.
  return mode !== 'semaphore' && find(leases, ({ isShared }) => !isShared) !== undefined;
}

/** Called at each hand-over, so it allocates no array or iterator for a single lease. */
function find(leases: LocalStoreLeases, isMeant: (storeLease: StoreLease) => boolean): StoreLease | undefined {
  if (!(leases instanceof Set)) return leases !== undefined && isMeant(leases) ? leases : undefined;
  for (const storeLease of leases) if (isMeant(storeLease)) return storeLease;
  return undefined;
}
