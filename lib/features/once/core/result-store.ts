import type { AcquireReply, LockOwner } from '../../../kernel/store/lock-store.js';

/** The answer to a claim: the lock, the stored result, or why there is neither. */
export type ClaimedResult = AcquireReply | { readonly status: 'kept'; readonly result: string };

/**
 * Keeps the results of `once`, each in the slot of its lock. A result is an encoded text, see `encodeResult`. Every
 * method is one atomic step, and may be sent again. A rejection is a `LockStoreError`.
 */
export interface ResultStore {
  /** Returns the kept text, which another program may have written. `undefined` without one. */
  read(resource: string): Promise<string | undefined>;
  /**
   * Acquires the lock if it is free and no result is stored.
   *
   * @param unreadable a kept text that counts as none
   */
  claim(owner: LockOwner, leaseMs: number, unreadable?: string): Promise<ClaimedResult>;
  /**
   * Stores the result and releases the lock, if this owner holds it. After {@link forget}, it only releases the lock.
   *
   * @returns false if this owner did not hold it; then nothing was stored
   */
  keep(owner: LockOwner, result: string, ttlMs: number): Promise<boolean>;
  /** Deletes the result. If an owner holds the lock, its result is not stored either. */
  forget(resource: string): Promise<void>;
}
