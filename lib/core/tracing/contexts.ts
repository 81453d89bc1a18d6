import type { LockError } from '../api/errors.js';
import type { LeaseLossReason } from '../api/lease-errors.js';
import type { LockMode } from '../api/lock-options.js';
import type { AcquireOutcome } from './outcomes.js';

/** What each message says about its lock. */
export interface LockTrace {
  /** The name of the lock service. */
  readonly service: string;
  /** What is locked. It can be different in each call, so it does not belong into a metric. */
  readonly resource: string;
  readonly mode: LockMode;
}

/** How a call comes to its lock. */
export type AcquireEntry =
  /** It asks for it: `acquire`, `using`, a decorator, a handler, a semaphore, the candidate of a leadership. */
  | 'call'
  /** Its async context holds the resource already. Only the outermost call has a hold. */
  | 'reentry';

/**
 * The messages of `nestjs-redis-lock:acquire`: one call asks for one resource. A call for several resources asks for
 * one after another. The object is frozen, and the same for all messages of a call. A property that may be `undefined`
 * gets its value later, at the latest before `asyncEnd`.
 */
export interface LockAcquireTrace extends LockTrace {
  readonly entry: AcquireEntry;
  /** How long after the start the call began to wait, in milliseconds; `undefined` if it did not wait. */
  readonly queuedAfterMs: number | undefined;
  /** How long after the start the lock was granted, or the call failed, in milliseconds. */
  readonly waitedMs: number | undefined;
  /** How many times the store was asked for this call; 0 if it only waited behind other calls of its process. */
  readonly attempts: number | undefined;
  readonly fencingToken: number | undefined;
  readonly outcome: AcquireOutcome | undefined;
  /** Why it failed. */
  readonly error: unknown;
}

/** How a hold ended. */
export type HoldOutcome = 'released' | 'lost' | 'transferred';

/**
 * The messages of `nestjs-redis-lock:hold`: from the grant until the lease is released, lost or transferred. The object
 * is frozen, and the same for all messages of a hold. A property that may be `undefined` gets its value later, at the
 * latest before `asyncEnd`.
 */
export interface LockHoldTrace extends LockTrace {
  readonly fencingToken: number;
  /** How long the call has waited for it, in milliseconds. */
  readonly waitedMs: number;
  /** How long it was held, in milliseconds. */
  readonly heldMs: number | undefined;
  readonly outcome: HoldOutcome | undefined;
  /** Why it was lost. */
  readonly reason: LeaseLossReason | undefined;
  /** Why it was lost, or why its release was not confirmed. */
  readonly error: LockError | undefined;
}
