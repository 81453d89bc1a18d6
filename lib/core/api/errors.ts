import { quote } from '../util/quoted.js';

/** What an attempt to acquire came to: somebody holds the lock, no answer in time, or Redis could not be asked. */
export type AttemptOutcome = 'busy' | 'timeout' | 'failed';

/** Why a lease ended before it was released. */
export type LeaseLossReason =
  /** A fixed lease reached its end (`watchdog: false`). */
  | 'expired'
  /** Redis says that somebody else, or nobody, holds the lock. */
  | 'takenOver'
  /** No renewal was confirmed before the deadline: Redis did not answer, or this process stood still. */
  | 'notRenewed'
  /** The lease reached its `maxHoldMs`. */
  | 'maxHold'
  /** The application shut down and the work did not end within `drainMs`. */
  | 'shutdown'
  /** Not lost but used after it was released. */
  | 'released'
  /** Not lost but used after it was handed on. */
  | 'transferred'
  /** Not lost but adopted before, by another call of `adopt()` with the same text, which holds it. */
  | 'adopted';

/** How a resource is written in messages: quoted, escaped, and cut where it is long. */
export function quoteResource(resource: string | readonly string[]): string {
  if (typeof resource !== 'string') return resource.map(quoteResource).join(', ');
  return quote(resource);
}

/** The root of every error of this library. It never carries a secret: no owner id, no password, no script arguments. */
export abstract class LockError extends Error {
  /** A stable name for programs, such as `LOCK_BUSY`. */
  abstract readonly code: string;

  constructor(
    message: string,
    /** The resource the error is about; empty where there is none. Several are joined by commas. */
    readonly resource: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Somebody else holds the resource, and the call did not wait or ran out of attempts. */
export class LockBusyError extends LockError {
  override readonly code = 'LOCK_BUSY';
  readonly lastAttempt: AttemptOutcome = 'busy';

  constructor(
    resource: string,
    /** How many times Redis was asked. */
    readonly attempts: number,
    /** When the holder's lease ends unless it is renewed, in milliseconds. */
    readonly retryAfterMs: number,
  ) {
    super(
      `${quoteResource(resource)} is locked by another holder (asked ${attempts} time${attempts === 1 ? '' : 's'}; ` +
        `its lease has ${Math.round(retryAfterMs)} ms left unless renewed). Give waitMs to wait for it, or try again later.`,
      resource,
    );
  }
}

/**
 * `waitMs` is over, and as far as was known at that moment the resource was held. Where Redis could not be asked at the end, it is
 * a {@link LockUnavailableError}, also when it was held before.
 */
export class LockTimeoutError extends LockError {
  override readonly code = 'LOCK_TIMEOUT';
  readonly lastAttempt: AttemptOutcome = 'busy';

  constructor(
    resource: string,
    readonly waitedMs: number,
    /** How many times Redis was asked for this call; 0 where it waited behind others of its process. */
    readonly attempts: number,
    /** When the holder's lease, or the latch, ends unless it is renewed, in milliseconds. */
    readonly retryAfterMs: number,
    /** What was waited for, where it is not a lock. */
    message?: string,
  ) {
    const how = attempts > 0 ? `asked ${attempts} time${attempts === 1 ? '' : 's'}` : 'behind others of this process';
    super(
      message ??
        `${quoteResource(resource)} was not free within ${Math.round(waitedMs)} ms (${how}). ` +
          `Raise waitMs, shorten the work done under the lock, or try again later.`,
      resource,
    );
  }
}

/** As many as `maxWaiters` allows wait for the resource already. */
export class LockQueueFullError extends LockError {
  override readonly code = 'LOCK_QUEUE_FULL';

  constructor(
    resource: string,
    readonly maxWaiters: number,
    /** Where they wait: in this process, or the processes in the queue in Redis. */
    readonly where: 'process' | 'redis',
    /** When the holder's lease ends unless it is renewed, in milliseconds. */
    readonly retryAfterMs: number,
  ) {
    super(
      `${quoteResource(resource)} is not waited for: ${maxWaiters} ` +
        `${where === 'process' ? 'calls of this process' : 'processes'} wait for it already (maxWaiters). ` +
        `Shorten the work done under the lock, take in less of it, or raise maxWaiters.`,
      resource,
    );
  }
}

/** The caller's AbortSignal ended the wait. `cause` is the signal's reason. */
export class LockAbortedError extends LockError {
  override readonly code = 'LOCK_ABORTED';

  constructor(resource: string, reason: unknown) {
    super(`Waiting for ${quoteResource(resource)} was aborted by the caller's signal.`, resource, { cause: reason });
  }
}

const LOSS_EXPLAINED: Record<LeaseLossReason, string> = {
  expired: 'it was a fixed lease and its time is over. Raise leaseMs, or leave the watchdog on',
  takenOver: 'Redis no longer has it: it was deleted, evicted, or lost with the data of a restart or fail-over',
  notRenewed:
    'no renewal was confirmed before its deadline. Redis did not answer, or this process stood still for longer than leaseMs',
  maxHold: 'it was held for maxHoldMs. Raise maxHoldMs, or do less under one lock',
  shutdown: 'the application is shutting down and the work did not end within shutdown.drainMs',
  released: 'it was released before. Do all work that needs it before release()',
  transferred: 'it was handed on with transfer(). Go on where it is adopted',
  adopted: 'it was adopted before, and is held there. Let the first delivery do the work',
};

/** The lease ended while the work still ran. Somebody else may hold the resource now: stop, and write nothing more. */
export class LeaseLostError extends LockError {
  override readonly code = 'LEASE_LOST';

  constructor(
    resource: string,
    readonly reason: LeaseLossReason,
    readonly fencingToken: number,
    explained = LOSS_EXPLAINED[reason],
  ) {
    super(`The lease of ${quoteResource(resource)} is no longer held: ${explained}.`, resource);
  }
}

/**
 * Two callers state different things about one resource: one takes it for a lock and the other for a semaphore, or they
 * state different numbers of permits, or different counts for one latch. Nothing was changed, and waiting would not help.
 */
export class LockModeMismatchError extends LockError {
  override readonly code = 'LOCK_MODE_MISMATCH';

  constructor(message: string, resource: string) {
    super(message, resource);
  }
}

/**
 * Redis cannot be reached, did not answer, or refuses. The cause says which. After a wait: it was so when the wait ended.
 */
export class LockUnavailableError extends LockError {
  override readonly code = 'LOCK_UNAVAILABLE';

  constructor(
    resource: string,
    /** What was being done, such as `acquire`. */
    readonly operation: string,
    readonly lastAttempt: AttemptOutcome,
    cause: unknown,
  ) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`Redis could not ${operation} ${quoteResource(resource)}: ${why}`, resource, { cause });
  }
}

/** The application is shutting down and takes no new locks. */
export class LockShutdownError extends LockError {
  override readonly code = 'LOCK_SHUTDOWN';

  constructor(resource: string) {
    super(`${quoteResource(resource)} was not acquired: this application is shutting down.`, resource);
  }
}

/** An option or a resource name that cannot be right. Thrown before anything is sent to Redis. */
export class InvalidLockOptionsError extends LockError {
  override readonly code = 'INVALID_LOCK_OPTIONS';

  constructor(
    message: string,
    /** The name of the option, such as `leaseMs`. */
    readonly option: string,
    options?: ErrorOptions,
  ) {
    super(message, '', options);
  }
}

/**
 * A name of a resource that is empty, too long, or no well-formed text. Such a name is mostly made from what a client sent; one that
 * is written in a decorator is refused when the class is defined.
 */
export class InvalidResourceError extends InvalidLockOptionsError {}

/** A decorated method was called on an object that Nest did not make, or without the module. */
export class LockModuleMissingError extends LockError {
  override readonly code = 'LOCK_MODULE_MISSING';
}
