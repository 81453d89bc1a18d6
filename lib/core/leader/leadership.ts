import type { Term } from './term.js';

/** Work that only the leader does. */
export type LeaderWork<T> = (term: Term) => T | Promise<T>;

/** This instance as a candidate for a leadership: one instance of all that campaign for it leads at a time. */
export interface Leadership {
  /** What `campaign` was given. */
  readonly name: string;
  /** The lock that the leader holds, `leader:<name>`: what `inspect`, `list`, `forceRelease` and `current` know it by. */
  readonly resource: string;
  /** Whether this instance leads at this moment, by this process's own monotonic clock; no round trip. */
  isLeader(): boolean;
  /** The signal of the term, see {@link Term}. An aborted one while this instance does not lead. */
  readonly signal: AbortSignal;
  /** The token of the term: grows from term to term over all instances. `undefined` while this instance does not lead. */
  readonly fencingToken: number | undefined;
  /**
   * The term that runs, or the next one.
   *
   * @throws NotLeaderError when the campaign has ended, or ends before it is elected
   */
  whenElected(): Promise<Term>;
  /**
   * Does the work if this instance leads, and gives what it returns; otherwise `undefined` without a call. Inside,
   * `locks.current(leadership.resource)` is the term. A term that steps down waits for the work to end.
   *
   * @throws InvalidLockOptionsError when the work is no function; else what the work throws
   */
  run<T>(work: LeaderWork<T>): Promise<T | undefined>;
  /**
   * Steps down, if this instance leads, and stands no more: the signal aborts, `isLeader()` is false and no new work starts;
   * callbacks and running work end; then the next candidate is told. It takes as long as they do. Called inside of the work or
   * a callback of the term it does not wait for them. A release that fails is told to the observers, and never thrown.
   */
  resign(): Promise<void>;
}
