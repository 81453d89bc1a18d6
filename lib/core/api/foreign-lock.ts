import { InvalidLockOptionsError } from './errors.js';
import type { LockMode } from './lock-mode.js';
import { wrongValue } from './validation.js';

/**
 * The port to the locks of other libraries. `alsoLock` takes such a lock beside our own, so that processes with the
 * other library and processes with this one exclude each other.
 */

/** What a lock client lends to the foreign locks that it opens. */
export interface ForeignContext {
  /** Names this process, for the name of a connection. */
  readonly instanceId: string;
  /** The monotonic time, in milliseconds. */
  now(): number;
  /** A new text of 128 random bits, for the value by which the other library knows the owner. */
  randomId(): string;
}

/**
 * The locks of another library, as the option `alsoLock` takes them. Made by the functions of
 * `nestjs-redis-lock/migration`. It is a description only: it sends nothing, and one object may serve any number of
 * modules and decorators, one after another or at the same time.
 */
export interface ForeignLock {
  /** What it is called in messages, such as `redlock`. */
  readonly library: string;
  /**
   * The key of the other library's lock for a resource. `undefined`: it has none, and the call takes our lock only.
   * Called before anything is sent, at each call to acquire.
   */
  keyOf(resource: string): string | undefined;
  /**
   * Opens it. Each lock client does so at most once, at the first call that needs it, and closes what it has opened
   * when it shuts down. Begins to connect, and never throws because of the network.
   */
  open(context: ForeignContext): ForeignClient;
}

/** A run of a singleton job that takes a foreign lock. Our lock of the job makes all its runs follow one another. */
export interface ForeignRun {
  /** The same for all runs of the job, in every process of the fleet, and for nothing else. It ends with a colon. */
  readonly name: string;
  /** The fencing token of the run: larger than that of every run before it. */
  readonly token: number;
}

/** A foreign lock in use by one lock client. */
export interface ForeignClient {
  /**
   * A claim to one key, with an owner value of its own. Sends nothing.
   *
   * @param run of a singleton job. The owner value then contains its name, its token and a colon, one after another. The
   *   claim takes over what an earlier run of the same job has left there: that run has ended, or its process has lost
   *   our lock. It tells a later run of the job from an old process, by `isOurs`.
   */
  claim(key: string, run?: ForeignRun): ForeignClaim;
  /** Closes its connections. Commands of its claims reject from then on. Resolves when they are closed. */
  close(): Promise<void>;
}

/**
 * The answer to an attempt. `ttlMs`: what is left of the present holder's lease; `Infinity` if it has no end. `isOurs`:
 * another run of the same job has it, and no old process.
 */
export type ForeignReply =
  | { readonly status: 'held' }
  | { readonly status: 'busy'; readonly ttlMs: number; readonly isOurs?: boolean };

/**
 * One owner's claim to one lock of the other library. All commands carry the same owner value, so each may be sent any
 * number of times, and may be executed late:
 *
 * - An `acquire` that finds its own value holds the lock, and renews it.
 * - An `acquire` of a run takes over from an earlier run of its job, and never from a later one.
 * - A renewal never makes the lease shorter, and never takes a lock that this owner does not hold.
 * - A release frees nothing of another owner.
 *
 * Each rejects with a `LockStoreError`, whose `failure` says how far the command got; any other error counts as
 * `unknown`. No method tries again by itself, except that a script which the server does not know is sent as text. No
 * method has a time limit of its own for an answer: the caller stops waiting, and a late answer is heeded.
 *
 * A lease is counted from the moment the method was called, less the allowance for the drift of the clocks
 * (`validUntil`). A claim to several servers answers `held` or `true` only where a majority of them agrees, and has to
 * leave nothing behind on the others where it does not.
 */
export interface ForeignClaim {
  /**
   * Asks once. May wait for the first connection, but not longer than a second.
   *
   * @param leaseMs how long the lock lasts without a renewal
   * @param signal aborts when the answer is not wanted any more: what was not sent by then is not sent
   */
  tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply>;
  /** The lease lasts at least `leaseMs` from now. @returns false if this owner does not hold it any more */
  renew(leaseMs: number): Promise<boolean>;
  /**
   * Ends it, also on servers that have not answered an acquire.
   *
   * @param keepMs how long the lock stays taken all the same, counted from now; 0: it is free at once
   * @returns whether this owner still held it
   */
  release(keepMs: number): Promise<boolean>;
  /**
   * For libraries that tell their waiters of a release: resolves when the lock may be free, after `forMs` at the latest,
   * or when the signal aborts. Never rejects. It may be wrong, so the caller asks again in any case. Without it, the
   * caller asks after a pause.
   */
  whenFree?(forMs: number, signal: AbortSignal): Promise<void>;
  /**
   * Why no command can be sent now, for the error of a call that had no answer; `undefined` if one can. It names the
   * server and the last error of the connection, and has no secrets.
   */
  describeTrouble?(): string | undefined;
}

/** @throws InvalidLockOptionsError if the value of `alsoLock` is no lock of another library */
export function checkForeignLock(option: string, value: unknown): void {
  const { library, keyOf, open } = (value ?? {}) as Partial<ForeignLock>;
  if (typeof library === 'string' && typeof keyOf === 'function' && typeof open === 'function') return;
  throw wrongValue(option, 'a lock of nestjs-redis-lock/migration, such as redlock({ client })', value);
}

/** @throws InvalidLockOptionsError if the other library has no lock of this mode */
export function checkAlsoLock({ alsoLock, mode }: { alsoLock?: ForeignLock; mode?: LockMode }): void {
  if (alsoLock === undefined || mode === undefined || isForeignMode(mode)) return;
  throw new InvalidLockOptionsError(
    `alsoLock is for the modes exclusive and reentrant, not '${mode}': the lock of ${alsoLock.library} has one holder. ` +
      'Leave alsoLock out, or take the lock exclusively until all old processes are gone.',
    'alsoLock',
  );
}

/** Whether the locks of other libraries are like it: with one holder. */
export function isForeignMode(mode: LockMode): boolean {
  return mode === 'exclusive' || mode === 'reentrant';
}
