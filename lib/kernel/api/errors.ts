import { brand } from '../util/objects.js';
import { formatDuration } from '../util/durations.js';
import { count, ordinal } from '../util/plurals.js';
import { describeThrown, quote } from '../util/quoted.js';
import { describeHolders, type Holder, type Holders, NO_HOLDERS } from './holder.js';

/**
 * The outcome of an attempt to acquire: another holder has the lock, no answer came in time, or Redis could not be
 * asked.
 */
export type AttemptOutcome = 'busy' | 'timeout' | 'failed';

/** Formats a resource for a message: quoted, escaped, and shortened if it is long. */
export function quoteResource(resource: string | readonly string[]): string {
  if (typeof resource !== 'string') return resource.map(quoteResource).join(', ');
  return quote(resource);
}

function isKnown({ holders }: Holders): boolean {
  return holders.length > 0;
}

/** Describes the facts beside the holder, in parentheses. One attempt is not worth a mention. */
function details(attempts: number, ...others: readonly (string | false)[]): string {
  const known = [...others, attempts > 1 && `asked ${count(attempts, 'time')}`].filter(Boolean);
  return known.length > 0 ? ` (${known.join(', ')})` : '';
}

/**
 * The root of every error of this library. It never carries a secret: no owner id, no password, no script arguments.
 */
export abstract class LockError extends Error {
  /** A stable name for programs, such as `LOCK_BUSY`. */
  abstract readonly code: string;
  /** The group of locks in events and metrics, such as `Class.method`, for a call or a lease that failed. */
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
 * Another holder has the resource, and the call didn't wait (`waitMs` is 0) or its retry strategy gave up.
 * `LockTimeoutError` and `LockQueueFullError` extend it.
 *
 * @remedy Set `waitMs`, or respond with "try again later".
 */
export class LockBusyError extends LockError {
  override readonly code: 'LOCK_BUSY' | 'LOCK_TIMEOUT' | 'LOCK_QUEUE_FULL' = 'LOCK_BUSY';
  readonly lastAttempt: AttemptOutcome = 'busy';
  /**
   * Up to 8 of the holders that the last answer named. Do not show them to a client: they name your processes.
   */
  readonly holders: readonly Holder[];
  /** The number of holders; 0 if unknown. */
  readonly holderCount: number;

  /** @internal */
  constructor(
    resource: string,
    /** The number of commands that this call sent to Redis; 0 if it only waited behind other calls of its process. */
    readonly attempts: number,
    /** When the holder's lease ends unless it is renewed, in milliseconds. */
    readonly retryAfterMs: number,
    seen: Holders = NO_HOLDERS,
    message?: string,
  ) {
    const isOne = seen.holderCount === 1 && seen.holders.length === 1;
    const left = isOne && `its lease has ${formatDuration(retryAfterMs)} left unless renewed`;
    super(
      message ??
        `${quoteResource(resource)} is held by ${isKnown(seen) ? describeHolders(seen) : 'another holder'}` +
          `${details(attempts, left)}. Set waitMs to wait for it, or try again later.`,
      resource,
    );
    this.holders = seen.holders;
    this.holderCount = seen.holderCount;
  }
}

/** The locks that a call itself held while it waited. */
export interface HeldMeanwhile {
  /** The resources, the innermost first. */
  readonly resources: readonly string[];
  /**
   * The calls that waited for each other: this one first, then the one that it waited for. Only set if the holder is
   * known to wait for one of these resources, directly or behind others, so that none could ever continue.
   */
  readonly deadlock?: readonly DeadlockedCall[];
}

/** One of the calls that wait for each other. */
export interface DeadlockedCall {
  readonly instanceId: string;
  readonly isThisProcess: boolean;
  /** As events and metrics have it. */
  readonly group: string;
  /** The resource that it holds and the previous call wants. The last call comes before the first. */
  readonly holds: string;
  readonly wants: string;
  /** The line of the application that wants it, if that was recorded. */
  readonly callSite?: string;
}

/** The cause of a wait that ended in a deadlock. Nothing was ended but the wait. */
class Deadlock extends Error {
  override readonly name = 'Deadlock';

  constructor(readonly calls: readonly DeadlockedCall[]) {
    super(describeDeadlock(calls, quote(calls[0]!.instanceId)));
    // Made by a timer.
    this.stack = `${this.name}: ${this.message}`;
  }
}

/** "A holds x and wants y (orders.ts:41); B holds y and wants x (stock.ts:17)". @param first names the first of them */
export function describeDeadlock(calls: readonly DeadlockedCall[], first: string): string {
  return calls
    .map(({ instanceId, isThisProcess, holds, wants, callSite }, index) => {
      const other = isThisProcess ? 'another call of this process' : quote(instanceId);
      const at = callSite === undefined ? '' : ` (${callSite})`;
      return `${index === 0 ? first : other} holds ${quote(holds)} and wants ${quote(wants)}${at}`;
    })
    .join('; ');
}

const SEVERAL = 'docs/guide/several-resources.md#what-can-still-deadlock';

/** Returns the advice after a time-out. A longer wait does not help against a deadlock. */
function adviceAfterWait(resource: string, meanwhile: HeldMeanwhile | undefined): string {
  const advice = 'Raise waitMs, hold the lock for less time, or try again later.';
  if (meanwhile === undefined) return advice;
  const { resources, deadlock } = meanwhile;
  const held = `This call also holds ${quoteResource(resources)}`;
  if (deadlock === undefined)
    return `${held}. If the holder waits for that, it is a deadlock: see ${SEVERAL}. Otherwise r${advice.slice(1)}`;
  const all = [...new Set([...resources, resource])].sort();
  return (
    `${held}, and the holder waits for that: a deadlock, which a longer wait cannot resolve. ` +
    `${describeDeadlock(deadlock, 'This call')}. Take all of them in one call, outside: [${all.map(quoteResource).join(', ')}]. See ${SEVERAL}.`
  );
}

/** The facts about a time-out, beside its holders. */
export interface WaitDetails {
  readonly place?: number | undefined;
  readonly heldByCaller?: HeldMeanwhile | undefined;
  readonly cancelRequestedMsAgo?: number | undefined;
}

/**
 * The resource was not free within `waitMs`. If Redis was unavailable at the end of the wait, you get a
 * `LockUnavailableError` instead, even if the resource was held before.
 *
 * @remedy Raise `waitMs`, hold the lock for less time, or respond with "try again later".
 * @see docs/guide/waiting.md#what-ended-the-wait
 */
export class LockTimeoutError extends LockBusyError {
  override readonly code = 'LOCK_TIMEOUT';
  /**
   * The last place of this call in the store's queue: 1 is the next to be granted. Each process has one place for all
   * its calls, and dead processes may count. `undefined` if the call waited behind another one of its process, polled,
   * or got no answer from the store.
   */
  declare place?: number;
  /**
   * The locks that the call itself held while it waited. Only set inside of work under a lease: `using` or a decorated
   * method. After a deadlock, it has the calls that waited for each other, and `cause` names them.
   */
  declare heldByCaller?: HeldMeanwhile;
  /**
   * Milliseconds since this call, or another one with `onBusy: 'cancelHolder'`, asked the holder to stop. `undefined`
   * if none did, for example because the holder is not `cancellable`.
   */
  declare cancelRequestedMsAgo?: number;

  /** @internal */
  constructor(
    resource: string,
    readonly waitedMs: number,
    attempts: number,
    retryAfterMs: number,
    seen: Holders = NO_HOLDERS,
    /** The message, if the wait was not for a lock. */
    message?: string,
    { place, heldByCaller, cancelRequestedMsAgo }: WaitDetails = {},
  ) {
    const how =
      (attempts > 0 ? '' : ' behind other calls of this process') +
      details(attempts, place !== undefined && `${ordinal(place)} in line`);
    const what = isKnown(seen)
      ? `is held by ${describeHolders(seen)}; waited ${formatDuration(waitedMs)}`
      : `was not free within ${formatDuration(waitedMs)}`;
    const wasAsked =
      cancelRequestedMsAgo === undefined
        ? ''
        : ` The holder was asked to stop ${formatDuration(cancelRequestedMsAgo)} ago (onBusy: 'cancelHolder').`;
    super(
      resource,
      attempts,
      retryAfterMs,
      seen,
      message ?? `${quoteResource(resource)} ${what}${how}. ${adviceAfterWait(resource, heldByCaller)}${wasAsked}`,
    );
    if (heldByCaller !== undefined) this.heldByCaller = heldByCaller;
    if (cancelRequestedMsAgo !== undefined) this.cancelRequestedMsAgo = cancelRequestedMsAgo;
    if (heldByCaller?.deadlock) {
      Object.defineProperty(this, 'cause', {
        value: new Deadlock(heldByCaller.deadlock),
        configurable: true,
        writable: true,
      });
    }
    if (place !== undefined) this.place = place;
  }
}

/** The limit that refused a call, with `maxAhead` if it was that one, and the queue. */
interface QueueLimit {
  readonly maxWaiters: number;
  readonly maxAhead?: number | undefined;
  readonly where: 'process' | 'redis';
}

/**
 * As many calls or processes as `maxWaiters` allows are already waiting for the resource, or more calls than
 * `maxAhead` wait before this one.
 *
 * @remedy Hold the lock for less time, accept less work, or raise `maxWaiters` or `maxAhead`.
 */
export class LockQueueFullError extends LockBusyError {
  override readonly code = 'LOCK_QUEUE_FULL';
  readonly maxWaiters: number;
  /** Only set if the call was refused because of it. */
  declare readonly maxAhead?: number;
  /** The queue that is full: the one of this process, or the one in Redis. */
  readonly where: 'process' | 'redis';

  /** @internal */
  constructor(
    resource: string,
    { maxWaiters, maxAhead, where }: QueueLimit,
    attempts: number,
    retryAfterMs: number,
    seen: Holders = NO_HOLDERS,
  ) {
    const held = isKnown(seen) ? `, and the resource is held by ${describeHolders(seen)}` : '';
    const isOne = maxWaiters === 1;
    const processes = isOne ? '1 process' : `${maxWaiters} processes`;
    const waiting = where === 'process' ? `${count(maxWaiters, 'call')} of this process` : processes;
    super(
      resource,
      attempts,
      retryAfterMs,
      seen,
      maxAhead === undefined
        ? `The queue for ${quoteResource(resource)} is full: ${waiting} ${isOne ? 'is' : 'are'} already waiting ` +
            `(maxWaiters)${held}. Hold the lock for less time, accept less work, or raise maxWaiters.`
        : `The queue for ${quoteResource(resource)} is too long: more than ${count(maxAhead, 'call')} would wait ` +
            `before this one (maxAhead)${held}. Hold the lock for less time, accept less work, or raise maxAhead.`,
    );
    if (maxAhead !== undefined) this.maxAhead = maxAhead;
    this.maxWaiters = maxWaiters;
    this.where = where;
  }
}

/**
 * The caller's `signal` ended the wait, with its reason as `cause`; or a newer call with `onBusy: 'cancelHolder'` has
 * cancelled this `cancellable` one. A holder that is asked to stop gets this error from its signal.
 *
 * @remedy Nothing: the caller asked for it, or the newer call does the work.
 */
export class LockAbortedError extends LockError {
  override readonly code = 'LOCK_ABORTED';
  /** `signal`: the caller's signal aborted. `superseded`: a newer call wants the resource. */
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
      `and this one would do older work after it (onBusy: 'cancelHolder'). Call again if there is no newer one.`;
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
 * Two callers use one resource as different things: a lock and a semaphore, or different numbers of permits. Nothing
 * was changed, and waiting doesn't help.
 *
 * @remedy Use the same options everywhere or another name, or `resize` the semaphore.
 */
export class LockModeMismatchError extends LockError {
  override readonly code = 'LOCK_MODE_MISMATCH';

  /** @internal */
  constructor(message: string, resource: string) {
    super(message, resource);
  }
}

/**
 * Redis is unreachable, didn't answer, or rejected the command. For a call that waited, this was so at the end of its
 * wait. `cause` has the error.
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
      unavailableMs === undefined ? '' : `. The call waited ${formatDuration(unavailableMs)} for it (unavailableMs)`;
    super(`Redis could not ${operation}${what}: ${describeThrown(cause)}${waited}`, resource, { cause });
  }
}

/** The application is shutting down and takes no new locks. @remedy Nothing: another instance does the work. */
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
 * An option or a resource name is invalid. Thrown at boot, when a class is defined, or by the call, before anything is
 * sent to Redis.
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
 * @remedy Respond with 400, or validate the input before.
 */
export class InvalidResourceError extends InvalidLockOptionsError {}

/**
 * A decorated method was called without the module, in a constructor, or on an object that Nest didn't create.
 *
 * @remedy Make the object a provider; in a unit test, `bindLocks(object, passThroughLocks())` from
 * `nestjs-redis-lock/testing`.
 * @see docs/guide/testing.md
 */
export class LockModuleMissingError extends LockError {
  override readonly code = 'LOCK_MODULE_MISSING';
}

brand({
  LockError,
  LockBusyError,
  LockTimeoutError,
  LockQueueFullError,
  LockAbortedError,
  LockModeMismatchError,
  LockUnavailableError,
  LockShutdownError,
  InvalidLockOptionsError,
  InvalidResourceError,
  LockModuleMissingError,
});
