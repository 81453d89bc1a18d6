import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LockStore, LockOwner } from './lock-store.js';
import type { Random } from '../util/random.js';

/**
 * A new owner id. It begins with the client: operators see which process holds the lock, and grants reach it. The rest
 * is secret: a process that knows the whole id can renew and release the lock.
 */
export function createOwnerId(clientId: string, random: Random): string {
  return `${clientId}/${random.id()}`;
}

/** The identity of a new waiter of this client in the store. */
export function createOwner(
  resource: string,
  { mode, permits, label }: Pick<ResolvedLockOptions, 'mode' | 'permits' | 'label'>,
  { store, random }: { readonly store: LockStore; readonly random: Random },
): LockOwner {
  const id = createOwnerId(store.clientId, random);
  return label === undefined ? { resource, id, mode, permits } : { resource, id, mode, permits, label };
}

/** The instance that an owner id begins with. */
export function instanceOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.indexOf('/'));
}

/** The client that an owner id was made for. */
export function clientOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf('/'));
}
