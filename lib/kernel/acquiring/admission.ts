import { unavailable } from './acquire-errors.js';
import { LockQueueFullError } from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Queueing } from '../store/lock-store.js';
import type { Clock } from '../util/clock.js';
import { ageOf } from './newest-first.js';
import type { PendingCall, WaitingCalls } from './pending-call.js';
import { noteReasons, type QueueFacts } from './why-waiting.js';

/** The waiter of a local queue, as far as it decides which calls may wait. */
interface Asking {
  readonly call: PendingCall;
  readonly place?: number;
  /** The call that joined an empty queue and asks, until a reply makes it wait. */
  firstCall?: PendingCall | undefined;
}

/** The local queue of a resource. */
interface Line {
  readonly size: number;
  readonly facts: QueueFacts;
}

/** Begins to ask for a call that waits for no other one. It may find the resource free, so it does not count yet. */
export function beginsFirst(waiter: Asking): void {
  waiter.firstCall = waiter.call;
}

function asksFirst(waiter: Asking | undefined): boolean {
  return waiter?.firstCall !== undefined && waiter.firstCall === waiter.call;
}

/**
 * Returns true if the call must be in the queue of the store although this process holds the resource: its place there
 * records its order.
 */
export function needsPlace({ newest }: ResolvedLockOptions): boolean {
  return newest !== undefined;
}

/** Returns why a call cannot wait behind all calls of the line, if too many wait before it. */
export function refusalOf(call: PendingCall, waiter: Asking | undefined, line: Line, clock: Clock): Error | undefined {
  const before = line.size - (asksFirst(waiter) ? 1 : 0);
  return before >= call.options.maxWaiters ? localFullError(line, call, clock) : undefined;
}

/** The waiter has to wait. Now its call counts, so calls behind it may be too many. @returns those, and why */
export function refusedBehind(
  waiter: Asking,
  waiting: WaitingCalls,
  line: Line,
  clock: Clock,
): readonly (readonly [PendingCall, Error])[] {
  if (!asksFirst(waiter)) return [];
  waiter.firstCall = undefined;
  const refused: [PendingCall, Error][] = [];
  let before = 1;
  for (const call of waiting.all) {
    if (before >= call.options.maxWaiters) refused.push([call, localFullError(line, call, clock)]);
    else before++;
  }
  return refused;
}

/** The limits with which a waiter asks. One that cancels older calls joins once: its place decides which one is newer. */
export function queueingOf({ call, place }: Asking, sentAt: number): Queueing {
  const { maxWaiters, newest } = call.options;
  if (!newest?.cancels) return { sentAt, maxWaiters };
  return { sentAt, maxWaiters: place === undefined ? maxWaiters : 0, age: ageOf(call, sentAt) };
}

/** The store has refused the call a place in its queue. */
export function remoteFullError(facts: Facts, { options }: PendingCall, now: number): LockQueueFullError {
  return fullError(facts, { maxWaiters: options.maxWaiters, where: 'redis' }, now);
}

/** Too many wait already, for the holder or for a Redis that cannot be reached. */
function localFullError({ facts }: Line, { options }: PendingCall, clock: Clock): Error {
  const now = clock.now();
  noteReasons(facts, options, now, false);
  const { resource, log } = facts;
  return log.lastError
    ? unavailable(resource, log)
    : fullError(facts, { maxWaiters: options.maxWaiters, where: 'process' }, now);
}

type Facts = Pick<QueueFacts, 'resource' | 'log'>;
type Limit = ConstructorParameters<typeof LockQueueFullError>[1];

function fullError({ resource, log }: Facts, limit: Limit, now: number): LockQueueFullError {
  return new LockQueueFullError(resource, limit, log.attempts, log.holderTtlMs, log.holders(now));
}
