import type { LockMode } from '../api/lock-mode.js';
import type { Holder } from '../api/holder.js';

/** The lock that a call requests, or that a run of a job holds. */
export interface TracedLock {
  /** The name of the lock service. */
  readonly service: string;
  readonly resource: string;
  readonly mode: LockMode;
  /** See the module option `group`. */
  readonly group: string;
}

/**
 * Traces calls and the work under their locks, for example with spans. Unlike an observer, a tracer is called in the
 * async context of the caller. Errors that it throws never reach a caller.
 */
export interface LockTracer {
  /**
   * `true` traces the renewals of leases too: implement `renews` in your {@link HoldTrace}. Read when the tracer is
   * added.
   */
  readonly followsRenewals?: boolean;
  /**
   * Returns true while the tracer can't record anything yet. Called before each traced call, until it first returns
   * `false`.
   */
  isOff?(): boolean;
  /**
   * Called when a call to acquire begins, in the async context of the caller. Re-entries and candidates for a
   * leadership are not traced.
   *
   * @returns the trace of the call, or `undefined` if it is not traced
   */
  acquire(lock: TracedLock): CallTrace | undefined;
  /** Called when this instance has claimed a tick and is about to run the job, in the async context of the caller. */
  tick(lock: TracedLock, run: TracedRun): RunTrace | undefined;
}

/** A run of a singleton job. */
export interface TracedRun {
  readonly job: string;
  readonly tick: string;
  readonly rerun: boolean;
}

/** Follows one call to acquire, until `granted` or `failed`. */
export interface CallTrace {
  /** The W3C trace context for the label of the lease; `undefined` if the trace is not recorded. */
  readonly traceparent: string | undefined;
  /** Calls `ask`, which sends commands to Redis, and returns its result: for example in the context of a span. */
  run<T>(ask: () => T): T;
  /**
   * Called when the call waits for `holders`, as far as this process knows. May be called repeatedly.
   *
   * @param waitedMs the time since the call began
   */
  waits(holders: readonly Holder[], waitedMs: number): void;
  /** Called when the lock is granted. @returns the trace of the lease, or `undefined` if it is not traced */
  granted(grant: TracedGrant): HoldTrace | undefined;
  /** Called when the call has ended without a lock. */
  failed(error: unknown, waitedMs: number): void;
}

/** The grant of a traced call. */
export interface TracedGrant {
  readonly fencingToken: number;
  readonly waitedMs: number;
  /** The number of commands that this call sent to Redis. */
  readonly attempts: number;
}

/** Follows one lease, from its grant to its release or loss. */
export interface HoldTrace {
  /** Calls the work under the lease, once, and returns its result. */
  run<T>(work: () => T): T;
  /**
   * Called before a renewal, if the tracer has `followsRenewals`. `watchdog`: the timer that renews leases, which runs
   * in no caller's async context. `extend`: a call of `lease.extend()`, in the async context of its caller.
   *
   * @returns the trace of the renewal, or `undefined` if it is not traced
   */
  renews?(by: 'watchdog' | 'extend'): RenewalTrace | undefined;
  /** Called when the lease has ended. */
  ended(end: TracedEnd): void;
}

/** Follows one renewal of a lease. */
export interface RenewalTrace {
  /** Calls `ask`, which sends the command to Redis, once, and returns its result. */
  run<T>(ask: () => T): T;
  /** Called when the renewal has ended. @param error the reason why it failed */
  ended(outcome: 'renewed' | 'lost' | 'failed', error: unknown): void;
}

/** The end of a traced lease. */
export interface TracedEnd {
  readonly outcome: 'released' | 'lost' | 'leaked';
  readonly heldMs: number;
  /** The reason why it was lost, or why its release was not confirmed. */
  readonly error: unknown;
}

/** Follows one run of a job. */
export interface RunTrace {
  /** Calls `work`, which runs the job under its lease, once, and returns its result. */
  run<T>(work: () => T): T;
  /** Called when the lock of the job is held, in the async context of `run`. */
  held(grant: TracedGrant): HoldTrace | undefined;
  /** Called when the run has ended. @param error the error of the job, or `undefined` */
  ended(error: unknown): void;
}
