import type { LockMode } from './lock-options.js';

/**
 * A time-bounded grant of a resource. It ends *released*, *lost*, or (a fixed lease) *expired*.
 *
 * ```ts
 * await using lease = await locks.acquire('reports');
 * ```
 */
export interface Lease extends AsyncDisposable {
  /** The name that was locked. Several are joined by commas. */
  readonly resource: string;
  /** Each name that is held, sorted. */
  readonly resources: readonly string[];
  readonly mode: LockMode;
  /**
   * Grows with every lease of a resource. Send it with each write and let the receiver refuse a token smaller than the
   * largest it has seen. Of several resources: the largest of their tokens.
   */
  readonly fencingToken: number;
  /**
   * The token of one of several resources: the strictest one to send with a write that concerns that resource alone.
   *
   * @throws InvalidLockOptionsError when this lease does not hold the resource
   */
  fencingTokenOf(resource: string): number;
  /** Aborts, with a `LeaseLostError` as reason, no later than the moment the lease may have gone to somebody else. */
  readonly signal: AbortSignal;
  /** Whether the lease is valid at this moment, by this process's own monotonic clock; no round trip. */
  isHeld(): boolean;
  /** Milliseconds until the lease ends unless it is renewed; 0 when it is not held. */
  remainingMs(): number;
  /** @throws LeaseLostError when the lease is not held */
  assertHeld(): void;
  /**
   * Asks Redis whether this lease still holds the resource. A no ends the lease.
   *
   * @throws LockUnavailableError when Redis does not answer
   */
  verify(): Promise<boolean>;
  /**
   * Starts the lease anew from now, and for the watchdog from now on.
   *
   * @param leaseMs 50 ms to 24 h; the lease's own when left out
   * @throws LeaseLostError when the lease is not held any more
   * @throws LockUnavailableError when Redis does not answer; the lease then runs on to its old end
   */
  extend(leaseMs?: number): Promise<void>;
  /**
   * Gives the resource back. A second call does nothing, and a lease that was lost is no error here.
   *
   * @throws LockUnavailableError when Redis did not confirm it. The lease is over here all the same, and the release is
   *   sent again in the background until the lock has expired by itself.
   * @throws LockReentryError when an async context that does not hold a reentrant lease releases it
   */
  release(): Promise<void>;
  /** Releases for `await using`. Never throws: what fails is told to the observers. */
  [Symbol.asyncDispose](): Promise<void>;
}
