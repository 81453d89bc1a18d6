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
 * Traces a call and the work under its lock, with spans for example. It is separate from the observers of a telemetry,
 * because a span has to start in the async context of the caller and be the parent of the work.
 *
 * Its errors never reach a caller.
 */
export interface LockTracer {
  /** `true` if it traces the renewals of leases. Set it once, and implement `renews` in your {@link HoldTrace}. */
  readonly followsRenewals?: boolean;
  /**
   * Returns true while it cannot record anything yet. Called before each call, until it returns `false` for the first
   * time.
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
  /** Runs the code that sends commands to the store, for example in the context of a span. */
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
  /** The number of commands that were sent to the store for this call. */
  readonly attempts: number;
}

/** Follows one lease, from its grant to its release or loss. */
export interface HoldTrace {
  /** Runs the work under the lease, once. */
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
  /** Runs the code that sends the command to the store, once. */
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
  /** Runs the job, including its lease, once. */
  run<T>(work: () => T): T;
  /** Called when the lock of the job is held, in the async context of `run`. */
  held(grant: TracedGrant): HoldTrace | undefined;
  /** Called when the run has ended. @param error the error of the job, or `undefined` */
  ended(error: unknown): void;
}
