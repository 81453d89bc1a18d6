import type { Holder, LockLabel } from '../api/holder.js';
import type { LockMode } from '../api/lock-options.js';

/** A process that waits in the queue in Redis, for one or more of its calls. */
export interface LockWaiter {
  readonly instanceId: string;
  readonly mode: LockMode;
  /** The number of semaphore permits that the waiter requests; `undefined` in other modes. */
  readonly permits?: number;
  /** The waiting call's own description (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /**
   * The time until its place in the queue expires unless it is extended, in milliseconds. Not set for calls that wait
   * only inside this process.
   */
  readonly placeMs?: number;
  /**
   * The length of the lease that it requests, in milliseconds. A live waiter extends its place in the queue at least
   * every third of this time; it last did so `leaseMs - placeMs` ago. Set if `placeMs` is set.
   */
  readonly leaseMs?: number;
}

/** The state of one resource in Redis at one moment. */
export interface LockState {
  readonly resource: string;
  /** `null` if the resource is free. */
  readonly mode: LockMode | null;
  /** None, one, or several readers or permit holders, in the order of their tokens. */
  readonly holders: readonly Holder[];
  /** The time until the last of the leases ends unless it is renewed, in milliseconds; 0 if the resource is free. */
  readonly ttlMs: number;
  /** The total and the free permits of a semaphore that is in use. `undefined` in other modes. */
  readonly permits?: { readonly total: number; readonly available: number };
  /**
   * The waiters in the queue; the first is granted next. If calls of this instance wait behind a holder in the same
   * instance, this instance is listed last.
   */
  readonly waiters: readonly LockWaiter[];
}
