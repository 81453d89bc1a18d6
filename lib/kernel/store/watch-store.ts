import type { Holders } from '../api/holder.js';

/** A client that waits until a resource is free, without taking it and without a place in the queue. */
export interface Watcher {
  readonly resource: string;
  /** The client id and a secret random part, like an owner id. */
  readonly id: string;
  /** A number of the client from 0 to 999. A {@link FreedMessage} returns the one that was sent last. */
  readonly mark: number;
}

export const MARKS = 1_000;

export interface WatchReply {
  /** No owner holds the resource, and no live waiter is to be granted it. */
  readonly isFree: boolean;
  /** The rest of the holder's lease, in milliseconds; 0 if the resource is free. */
  readonly ttlMs: number;
  /** The holders, if the store has them without another command. */
  readonly seen?: Holders;
}

/** The store has seen a watched resource free. Its watcher has to ask again for another message. */
export interface FreedMessage {
  readonly resource: string;
  /** `undefined`: the message is only a reason to ask. */
  readonly mark: number | undefined;
  /** Returns true if it was sent to this watcher, with exactly this mark. Only the store and the watcher know that. */
  readonly isFor: (watcher: string) => boolean;
}

/** Waits until a lock is free. A rejection is a `LockStoreError`. */
export interface WatchStore {
  /**
   * Checks whether the resource is free. Leftovers of a dead holder pass to the waiters first. If it is not free, the
   * watcher is notified once it is, within the next `watchMs`. With 0 the store only checks, and ends the watch.
   */
  watch(watcher: Watcher, watchMs: number): Promise<WatchReply>;
}
