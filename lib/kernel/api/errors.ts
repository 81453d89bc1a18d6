import { brand } from '../util/objects.js';
import { formatDuration } from '../util/durations.js';
import { describeThrown, quote } from '../util/quoted.js';

/**
 * `busy`: another holder has the lock. `timeout`: Redis didn't answer in time. `failed`: Redis was unreachable, or
 * rejected the command.
 */
export type AttemptOutcome = 'busy' | 'timeout' | 'failed';

/** Formats a resource for a message: quoted, escaped, and shortened if it is long. */
export function quoteResource(resource: string | readonly string[]): string {
  if (typeof resource !== 'string') return resource.map(quoteResource).join(', ');
  return quote(resource);
}

/** The base class of all errors of this library. Contains no secrets. */
export abstract class LockError extends Error {
  /** A stable identifier, such as `LOCK_BUSY`. */
  abstract readonly code: string;
  /** The group of the failed call or lease in events and metrics, such as `Class.method`. */
  declare group?: string;

  /** @internal */
  constructor(
    message: string,
    /** The resource the error is about; empty if there is none. Several are joined by commas. */
    readonly resource: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * The call was cancelled: the `signal` that you passed aborted during the wait (`cause` is its reason), or a newer call
 * with `onBusy: 'cancelHolder'` replaced this `cancellable` call. If the replaced call holds the lock, its
 * `lease.signal` aborts with this error.
 *
 * @remedy Nothing: the caller ended the wait, or the newer call does the work.
 */
export class LockAbortedError extends LockError {
  override readonly code = 'LOCK_ABORTED';
  /** `signal`: the `signal` of the call aborted. `superseded`: a newer call replaced it. */
  readonly reason: 'signal' | 'superseded' = 'signal';
  /** The instance of the newer call, if known. */
  declare readonly supersededBy?: string;

  /** @internal */
  static superseded(resource: string, by: string, isHeld: boolean): LockAbortedError {
    const what = isHeld
      ? `The work under ${quoteResource(resource)} was asked to stop`
      : `Waiting for ${quoteResource(resource)} was ended`;
    const message = `${what} by a newer call of ${quote(by)} (onBusy: 'cancelHolder').`;
    return Object.assign(new LockAbortedError(resource, undefined, message), {
      reason: 'superseded',
      supersededBy: by,
    });
  }

  /** @internal */
  static lostPlace(resource: string): LockAbortedError {
    const message =
      `Waiting for ${quoteResource(resource)} has ended, because its place in the queue was lost: the event loop was ` +
      `blocked, no message reached this process, or Redis has lost its data. A newer call may have been granted the resource since, ` +
      `and this call would run its older work after that (onBusy: 'cancelHolder'). Call again if there is no newer call.`;
    return Object.assign(new LockAbortedError(resource, undefined, message), { reason: 'superseded' });
  }

  /** @internal */
  constructor(resource: string, reason: unknown, message?: string) {
    if (message !== undefined) super(message, resource);
    else
      super(`Waiting for ${quoteResource(resource)} was aborted by the caller's signal.`, resource, { cause: reason });
  }
}

/**
 * Two callers use one resource differently: one as a lock and one as a semaphore, or with different numbers of permits.
 * Nothing was changed, and waiting doesn't help.
 *
 * @remedy Use the same options everywhere, use another name, or `resize` the semaphore.
 */
export class LockModeMismatchError extends LockError {
  override readonly code = 'LOCK_MODE_MISMATCH';

  /** @internal */
  constructor(message: string, resource: string) {
    super(message, resource);
  }
}

/**
 * Redis is unreachable, didn't answer, or rejected the command. `cause` is the original error.
 *
 * @remedy Check `cause` for the reason, such as a wrong password or a missing permission.
 */
export class LockUnavailableError extends LockError {
  override readonly code = 'LOCK_UNAVAILABLE';

  /** @internal */
  constructor(
    resource: string,
    /** The operation that failed, such as `acquire`. */
    readonly operation: string,
    readonly lastAttempt: AttemptOutcome,
    cause: unknown,
    unavailableMs?: number,
  ) {
    const what = resource !== '' ? ` ${quoteResource(resource)}` : operation.includes(' ') ? '' : ' locks';
    const waited =
      unavailableMs === undefined ? '' : `. The call waited ${formatDuration(unavailableMs)} for Redis (unavailableMs)`;
    super(`Redis could not ${operation}${what}: ${describeThrown(cause)}${waited}`, resource, { cause });
  }
}

/** The application is shutting down and acquires no new locks. @remedy Nothing: another instance does the work. */
export class LockShutdownError extends LockError {
  override readonly code = 'LOCK_SHUTDOWN';

  /**
   * @internal
   * @param what what it did not do
   */
  constructor(resource: string, what = `${quoteResource(resource)} was not acquired`) {
    super(`${what}: this application is shutting down.`, resource);
  }
}

/**
 * An option or a resource name is invalid. Thrown when the application starts, when a decorator is applied, or by the
 * call before it sends anything to Redis. Also thrown after the work if its result can't be used: a stream, an
 * Observable, a generator, or a result that `once` can't store.
 *
 * @remedy Fix the option that `option` names.
 */
export class InvalidLockOptionsError extends LockError {
  override readonly code = 'INVALID_LOCK_OPTIONS';

  /** @internal */
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
 * A resource name is empty, too long, reserved (`cron:…`, `leader:…`, `once:…`), or malformed text. Extends
 * `InvalidLockOptionsError`.
 *
 * @remedy Respond with 400, or validate the name before the call.
 */
export class InvalidResourceError extends InvalidLockOptionsError {}

/**
 * A decorated method was called in an application without the module, in a constructor, or on an object that Nest
 * didn't create.
 *
 * @remedy Make the object a provider. In a unit test, call `bindLocks(object, passThroughLocks())` from
 *   `nestjs-redis-lock/testing`.
 * @see docs/guide/testing.md
 */
export class LockModuleMissingError extends LockError {
  override readonly code = 'LOCK_MODULE_MISSING';
}

brand({
  LockError,
  LockAbortedError,
  LockModeMismatchError,
  LockUnavailableError,
  LockShutdownError,
  InvalidLockOptionsError,
  InvalidResourceError,
  LockModuleMissingError,
});
