import { InvalidLockOptionsError } from './errors.js';
import type { LockMode } from './lock-options.js';
import { checkWork } from './work.js';

/**
 * A time-limited grant of a resource. It ends *released*, *lost*, or (a fixed lease) *expired*.
 *
 * ```ts
 * await using lease = await locks.acquire('reports');
 * ```
 */
export interface Lease extends AsyncDisposable {
  /** The name of the locked resource; several names are joined by commas. */
  readonly resource: string;
  /** The names of the held resources, sorted. */
  readonly resources: readonly string[];
  readonly mode: LockMode;
  /** The number of semaphore permits that the lease has; `undefined` in other modes. */
  readonly permits: number | undefined;
  /**
   * A number that grows with every lease of the resource. Only concurrent readers and permit holders get their tokens
   * in no particular order. Send the token with each write, and let the receiver reject a token that is smaller than
   * the largest it has seen. A lease of several resources has the largest of their tokens; the next holder of any of
   * them gets a larger one.
   *
   * @throws InvalidLockOptionsError for several resources in different slots of a Redis Cluster: each slot numbers its
   *   leases separately, so the largest token could exceed the next holder's. Use {@link fencingTokenOf}
   */
  readonly fencingToken: number;
  /**
   * The token of one of several resources. Send it with a write that changes only that resource: the check is stricter.
   *
   * @throws InvalidLockOptionsError if this lease does not hold the resource
   */
  fencingTokenOf(resource: string): number;
  /**
   * Aborts with a `LeaseLostError` if the lease is lost, no later than another holder could get the resource. Does not
   * abort if you end the lease yourself with `release()`.
   */
  readonly signal: AbortSignal;
  /** Returns true if the lease is valid now, by the monotonic clock of this process. Needs no round trip. */
  isHeld(): boolean;
  /** Milliseconds until the lease ends unless it is renewed; 0 if the lease is not held. */
  remainingMs(): number;
  /** @throws LeaseLostError if the lease is not held */
  assertHeld(): void;
  /**
   * Asks Redis whether this lease still holds the resource. If not, the lease ends.
   *
   * @throws LockUnavailableError if Redis does not answer
   */
  verify(): Promise<boolean>;
  /**
   * Renews the lease, counted from now. Later renewals use the same length. If other readers of this process share the
   * lease in Redis, the lease doesn't get shorter.
   *
   * @param leaseMs the new length, 50 ms to 24 h; by default, the length it has
   * @throws LeaseLostError if the lease is no longer held
   * @throws LockUnavailableError if Redis does not answer; the lease then keeps its old end
   */
  extend(leaseMs?: number): Promise<void>;
  /**
   * Turns a write lock into a read lock: no other writer gets in between, and waiting readers are granted at once. The
   * lease keeps its token. From this call on, treat it as a read lock, even if the call fails. Does nothing for a
   * reader.
   *
   * @throws InvalidLockOptionsError if its mode is neither `write` nor `read`
   * @throws LockReentryError if this context has entered the write lock more than once
   * @throws LeaseLostError if the lease is no longer held
   * @throws LockUnavailableError if Redis does not answer, or rejects the command. The downgrade is then retried, and
   *   other readers wait until it succeeds
   */
  downgrade(): Promise<void>;
  /**
   * Releases some of the semaphore permits that this lease has, and keeps the rest. Waiting calls that now fit are
   * granted at once.
   *
   * @param count 1 to one less than the lease has; `release()` releases all of them
   * @throws InvalidLockOptionsError for another count, before `minHoldMs` has passed, or if the lease's mode is not
   *   `semaphore`
   * @throws LeaseLostError if the lease is no longer held
   * @throws LockUnavailableError if Redis does not answer, or rejects the command: stop using the permits, because they
   *   are released as soon as Redis accepts it. You can safely repeat the call: no permit is released twice
   */
  releasePermits(count: number): Promise<void>;
  /**
   * Releases the resource. A second call does nothing, and releasing a lost lease is not an error.
   *
   * @throws LockUnavailableError if Redis did not confirm it. The lease has ended anyway, and the release is retried in
   *   the background until the lock has expired.
   * @throws LockReentryError if the lease is reentrant, and another async context holds it
   */
  release(): Promise<void>;
  /** Releases for `await using`. Never throws: errors are reported to the observers. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Work done under a lease. It must not return an Observable, a stream or a generator, because their code would run
 * after the release.
 */
export type LockedWork<T> = (lease: Lease) => T | Promise<T>;

/** Takes apart the arguments `(options?, work)` of a call. */
export function optionsAndWork<O, T>(
  optionsOrWork: O | LockedWork<T> | undefined,
  work: LockedWork<T> | undefined,
  source: string,
): [options: O | undefined, work: LockedWork<T>] {
  if (typeof optionsOrWork !== 'function') return [optionsOrWork, checkWork(work, source)];
  if (work === undefined) return [undefined, optionsOrWork as LockedWork<T>];
  throw workBeforeOptions(source);
}

/** The error for `(work, options)`: the options would have no effect. */
export function workBeforeOptions(source: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `${source} takes the work last, after the options: ${source}(..., options, work).`,
    'work',
  );
}

/** The result of `tryUsing`: a flag for whether the work ran, and its return value. */
export type TryUsingResult<T> =
  | { readonly ran: true; readonly value: T }
  | { readonly ran: false; readonly value?: undefined };
