import { brand } from '../util/objects.js';
import { quote } from '../util/quoted.js';
import { formatDuration } from '../util/durations.js';
import { LockError, type AttemptOutcome, quoteResource } from './errors.js';
import { count, ordinal } from '../util/plurals.js';
import { type Holders, type Holder, NO_HOLDERS, heldBy } from './holder.js';

function isKnown({ holders }: Holders): boolean {
  return holders.length > 0;
}

/** Describes the facts beside the holder, in parentheses. One attempt is not worth a mention. */
function details(attempts: number, ...others: readonly (string | false)[]): string {
  const known = [...others, attempts > 1 && count(attempts, 'attempt')].filter(Boolean);
  return known.length > 0 ? ` (${known.join(', ')})` : '';
}

/** The facts that a call knows about a resource that it did not get. */
export interface BusyFacts {
  /** The number of commands that it sent. */
  readonly attempts: number;
  /** Milliseconds until the holder's lease ends, unless it is renewed. */
  readonly retryAfterMs: number;
  readonly seen?: Holders | undefined;
}

/**
 * Another holder has the resource, and the call didn't wait (`waitMs` is 0) or its retry strategy gave up.
 *
 * @remedy Set `waitMs`, or respond with "try again later".
 */
export class LockBusyError extends LockError {
  /** The number of commands that this call sent to Redis; 0 if it only waited behind other calls of its process. */
  readonly attempts: number;
  /** Milliseconds until the holder's lease ends, unless it is renewed. */
  readonly retryAfterMs: number;
  override readonly code: 'LOCK_BUSY' | 'LOCK_TIMEOUT' | 'LOCK_QUEUE_FULL' = 'LOCK_BUSY';
  readonly lastAttempt: AttemptOutcome = 'busy';
  /**
   * Up to 8 of the last known holders. Do not show them to clients: they contain the names of your processes.
   */
  readonly holders: readonly Holder[];
  /** The number of holders; 0 if unknown. */
  readonly holderCount: number;

  /** @internal */
  constructor(resource: string, { attempts, retryAfterMs, seen = NO_HOLDERS }: BusyFacts, message?: string) {
    const isOne = seen.holderCount === 1 && seen.holders.length === 1;
    const left = isOne && `its lease has ${formatDuration(retryAfterMs)} left unless renewed`;
    super(
      message ??
        `${quoteResource(resource)} ${isKnown(seen) ? heldBy(seen) : 'is held by another holder'}` +
          `${details(attempts, left)}. Set waitMs to wait for it, or try again later.`,
      resource,
    );
    this.attempts = attempts;
    this.retryAfterMs = retryAfterMs;
    this.holders = seen.holders;
    this.holderCount = seen.holderCount;
  }
}

/** One of the calls that wait for each other. */
export interface DeadlockedCall {
  readonly instanceId: string;
  readonly isThisProcess: boolean;
  /** The group of the call, as in events and metrics. */
  readonly group: string;
  /**
   * The resource that this call holds and the previous call in the list wants. The last call wants what the first one
   * holds.
   */
  readonly holds: string;
  /** The resource that this call waits for. */
  readonly wants: string;
  /** The call site in the application, if it was recorded. */
  readonly callSite?: string;
}

/** The cause of a wait that ended in a deadlock. Only the wait was ended, no lease. */
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
function adviceAfterWait(resource: string, meanwhile: WaitFacts['heldByCaller']): string {
  const advice = 'Raise waitMs, hold the lock for less time, or try again later.';
  if (meanwhile === undefined) return advice;
  const { resources, deadlock } = meanwhile;
  const held = `This call also holds ${quoteResource(resources)}`;
  if (deadlock === undefined)
    return `${held}. If the holder waits for that, it is a deadlock: see ${SEVERAL}. Otherwise r${advice.slice(1)}`;
  const all = [...new Set([...resources, resource])].sort();
  return (
    `${held}, and the holder waits for that, directly or through other calls: a deadlock, which a longer wait cannot resolve. ` +
    `${describeDeadlock(deadlock, 'This call')}. Acquire all of them in one call: [${all.map(quoteResource).join(', ')}]. See ${SEVERAL}.`
  );
}

/** The facts that a call knows when its wait has ended. */
export interface WaitFacts extends BusyFacts {
  readonly waitedMs: number;
  readonly place?: number | undefined;
  readonly heldByCaller?: LockTimeoutError['heldByCaller'];
  readonly cancelRequestedMsAgo?: number | undefined;
}

/**
 * The resource was not free within `waitMs`. If Redis was unavailable at the end of the wait, you get a
 * `LockUnavailableError` instead, even if the resource was held earlier.
 *
 * @remedy Raise `waitMs`, hold the lock for less time, or respond with "try again later".
 * @see docs/guide/waiting.md#which-error-do-i-get
 */
export class LockTimeoutError extends LockBusyError {
  /** The time that the call waited, in milliseconds. */
  readonly waitedMs: number;
  override readonly code = 'LOCK_TIMEOUT';
  /**
   * The last known place of this call in the queue: 1 is next. Each process has one place for all its calls, and dead
   * processes may be counted. `undefined` if the call waited behind another call in its process, polled, or got no
   * answer.
   */
  declare place?: number;
  /**
   * The locks that the call itself held while it waited, because it was made inside `using` or a decorated method.
   * After a deadlock, `cause` names the calls that waited for each other.
   */
  declare heldByCaller?: {
    /** The resources, the innermost lock first. */
    readonly resources: readonly string[];
    /**
     * After a deadlock: the calls that waited for each other, first this call, then the one it waited for, and so on.
     */
    readonly deadlock?: readonly DeadlockedCall[];
  };
  /**
   * Milliseconds since this call, or another one with `onBusy: 'cancelHolder'`, asked the holder to stop. `undefined`
   * if no call did, for example because the holder is not `cancellable`.
   */
  declare cancelRequestedMsAgo?: number;

  /**
   * @internal
   * @param message set if the wait was not for a lock
   */
  constructor(resource: string, facts: WaitFacts, message?: string) {
    const { waitedMs, attempts, seen = NO_HOLDERS, place, heldByCaller, cancelRequestedMsAgo } = facts;
    const where = attempts > 0 ? '' : ' behind other calls of this process';
    const what = isKnown(seen)
      ? `${heldBy(seen)}; waited ${formatDuration(waitedMs)}${where}`
      : `was not free within ${formatDuration(waitedMs)}${where && `: this call waited${where}`}`;
    const how = details(attempts, place !== undefined && `${ordinal(place)} in line`);
    const wasAsked =
      cancelRequestedMsAgo === undefined
        ? ''
        : ` The holder was asked to stop ${formatDuration(cancelRequestedMsAgo)} ago (onBusy: 'cancelHolder').`;
    super(
      resource,
      facts,
      message ?? `${quoteResource(resource)} ${what}${how}. ${adviceAfterWait(resource, heldByCaller)}${wasAsked}`,
    );
    this.waitedMs = waitedMs;
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

/** The facts that a call knows when a limit has refused it: `maxAhead` if that was the limit, and the queue. */
interface LimitFacts extends BusyFacts {
  readonly maxWaiters: number;
  readonly maxAhead?: number | undefined;
  readonly where: 'process' | 'redis';
}

/**
 * The queue is full: `maxWaiters` calls of this process, or `maxWaiters` processes, are already waiting for the
 * resource. Or it is too long: more than `maxAhead` calls would be ahead of this one.
 *
 * @remedy Hold the lock for less time, accept less work, or raise `maxWaiters` or `maxAhead`.
 */
export class LockQueueFullError extends LockBusyError {
  override readonly code = 'LOCK_QUEUE_FULL';
  readonly maxWaiters: number;
  /** The limit `maxAhead`, if it rejected the call. */
  declare readonly maxAhead?: number;
  /** The queue that is full: in this process, or in Redis. */
  readonly where: 'process' | 'redis';

  /** @internal */
  constructor(resource: string, facts: LimitFacts) {
    const { maxWaiters, maxAhead, where, seen = NO_HOLDERS } = facts;
    const held = isKnown(seen) ? `, and the resource ${heldBy(seen)}` : '';
    const isOne = maxWaiters === 1;
    const processes = isOne ? '1 process' : `${maxWaiters} processes`;
    const waiting = where === 'process' ? `${count(maxWaiters, 'call')} of this process` : processes;
    super(
      resource,
      facts,
      maxAhead === undefined
        ? `The queue for ${quoteResource(resource)} is full: ${waiting} ${isOne ? 'is' : 'are'} already waiting ` +
            `(maxWaiters)${held}. Hold the lock for less time, accept less work, or raise maxWaiters.`
        : `The queue for ${quoteResource(resource)} is too long: more than ${count(maxAhead, 'call')} would be ` +
            `ahead of this one (maxAhead)${held}. Hold the lock for less time, accept less work, or raise maxAhead.`,
    );
    if (maxAhead !== undefined) this.maxAhead = maxAhead;
    this.maxWaiters = maxWaiters;
    this.where = where;
  }
}

brand({ LockBusyError, LockTimeoutError, LockQueueFullError });
