import type { Holders } from '../api/holder.js';

/** A client that waits until a resource is free, without taking it and without a place in the queue. */
export interface Watcher {
  readonly resource: string;
  /** The client id and a secret random part, like an owner id. */
  readonly id: string;
  /** A number of the client from 0 to 999. A {@link FreedMessage} returns the one that was sent last. */
  readonly mark: number;
}

/** How many different marks there are. */
export const MARKS = 1_000;

export interface WatchReply {
  /** No owner holds the resource, and no live waiter is to be granted it. */
  readonly isFree: boolean;
  /** What is left of the holder's lease, in milliseconds; 0 if the resource is free. */
  readonly ttlMs: number;
  /** The holders, if the store can tell them without another command. */
  readonly seen?: Holders;
}

/** The store has seen a watched resource free. Its watcher has to ask again to hear of it once more. */
export interface FreedMessage {
  readonly resource: string;
  /** `undefined`: the message is only a reason to ask. */
  readonly mark: number | undefined;
  /** Whether it was sent to this watcher, with exactly this mark. Only the store and the watcher can tell. */
  readonly isFor: (watcher: string) => boolean;
}

/** What core needs from a store of locks to wait until one is free. A rejection is a `LockStoreError`. */
export interface WatchStore {
  /**
   * Looks whether the resource is free. What a dead holder has left goes to the waiters first. If it is not free, the
   * watcher is told when it is, once, within the next `watchMs`. With 0 the store only looks, and ends the watch.
   */
  watch(watcher: Watcher, watchMs: number): Promise<WatchReply>;
}
