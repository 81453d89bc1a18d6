import type { LockError } from '../api/errors.js';
import type { LeaseLossReason } from '../api/lease-errors.js';
import type { LockMode } from '../api/lock-options.js';
import type { AcquireOutcome } from '../events/events.js';

/** What each message says about its lock. */
export interface LockTrace {
  /** The name of the lock service. */
  readonly service: string;
  /** What is locked. It can be different in each call, so it does not belong in a metric. */
  readonly resource: string;
  readonly mode: LockMode;
  /** A static name of few values, as in events. */
  readonly group: string;
}

/** How a call comes to its lock. */
export type AcquireEntry =
  /** It asks for it: `acquire`, `using`, a decorator, a handler, a semaphore, the candidate of a leadership. */
  | 'call'
  /** Its async context holds the resource already. Only the outermost call has a hold. */
  | 'reentry'
  /** The database transaction has kept the lease of an earlier call, which goes on. It has one hold. */
  | 'transaction'
  /** It adopts a lease that another process has transferred. */
  | 'adoption'
  /** The tick of a singleton job, which was granted together with its lock. */
  | 'tick';

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
  /** Whether another call of this process has passed the lock on, in memory. */
  readonly handedOn: boolean | undefined;
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
  /** Whether another call of this process has passed it on, in memory. */
  readonly handedOn: boolean;
  /** How long it was held, in milliseconds. */
  readonly heldMs: number | undefined;
  readonly outcome: HoldOutcome | undefined;
  /** Why it was lost. */
  readonly reason: LeaseLossReason | undefined;
  /** Why it was lost, or why its release was not confirmed. */
  readonly error: LockError | undefined;
}

/** What became of a renewal. `lost`: Redis says that another holder has the lock, or that it is free. */
export type RenewOutcome = 'renewed' | 'lost' | 'failed';

/** The messages of `nestjs-redis-lock:renew`: one renewal of a lease that the watchdog sends, or `extend()`. */
export interface LockRenewTrace extends LockTrace {
  readonly entry: 'watchdog' | 'extend';
  readonly fencingToken: number;
  readonly outcome: RenewOutcome | undefined;
  readonly error: unknown;
}

/**
 * What became of a release. `afterLoss`: the lease was lost before. `lost`: the release found it out. `failed`: it was
 * not confirmed.
 */
export type ReleaseOutcome = 'released' | 'afterLoss' | 'lost' | 'failed';

/**
 * The messages of `nestjs-redis-lock:release`: a holder releases its lease, and ends when the store has confirmed it.
 */
export interface LockReleaseTrace extends LockTrace {
  /** `reentry`: the outermost call goes on. */
  readonly entry: 'call' | 'reentry';
  readonly fencingToken: number;
  /** Whether no command was needed: the next call of this process has the lock, or other readers of it go on. */
  readonly inMemory: boolean | undefined;
  readonly outcome: ReleaseOutcome | undefined;
  readonly error: unknown;
}

/** The messages of `nestjs-redis-lock:tick`: one tick of a singleton job on this instance, from its claim to its end. */
export interface LockTickTrace {
  /** The name of the lock service. */
  readonly service: string;
  /** A static name of few values, as in events. */
  readonly group: string;
  readonly job: string;
  readonly tick: string;
  readonly fencingToken: number | undefined;
  /** Whether the run was granted before to another instance, which did not finish it. */
  readonly rerun: boolean | undefined;
  /** How long the work ran, in milliseconds. */
  readonly ranMs: number | undefined;
  /** Why it does not run here, as in the event `tickSkipped`. */
  readonly reason: 'claimed' | 'overlap' | 'paused' | 'late' | 'early' | undefined;
  /**
   * What became of it on this instance. `skipped`: it does not run here. `failed`: it could not be claimed, or the
   * application shuts down.
   */
  readonly outcome: 'ok' | 'error' | 'lost' | 'skipped' | 'failed' | undefined;
  readonly error: unknown;
}
