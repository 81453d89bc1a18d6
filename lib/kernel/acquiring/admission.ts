import { unavailable } from './acquire-errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Clock } from '../util/clock.js';
import type { PendingCall, WaitingCalls } from './pending-call.js';
import type { StoreWaiter } from './store-waiter.js';
import { noteReasons, type QueueFacts } from './why-waiting.js';
import { LockQueueFullError } from '../api/busy-errors.js';

/** The local queue of a resource. */
interface CallsInLine {
  readonly size: number;
  readonly facts: QueueFacts;
}

/** The call that joined an empty queue may find the resource free, so it does not count until a reply makes it wait. */
export function asksFirst(waiter: StoreWaiter | undefined): boolean {
  return waiter?.firstCall !== undefined && waiter.firstCall === waiter.call;
}

/**
 * Returns true if the call must be in the queue of the store although this process holds the resource: its place there
 * records its order.
 */
export function needsPlace({ newest, maxAhead, onWait }: ResolvedLockOptions): boolean {
  return newest !== undefined || maxAhead !== undefined || onWait !== undefined;
}

/** Returns why a call cannot wait behind all calls of the line, if too many wait before it. */
export function refusalOf(
  call: PendingCall,
  waiter: StoreWaiter | undefined,
  line: CallsInLine,
  clock: Clock,
): Error | undefined {
  const before = line.size - (asksFirst(waiter) ? 1 : 0);
  const limit = limitReached(call, before, waiter?.place);
  if (limit !== undefined) return localFullError(line, call, limit, clock);
  if (call.options.maxAhead !== undefined && waiter && waiter.place === undefined) {
    call.isUnplaced = true;
    waiter.isAwaited = true;
  }
  return undefined;
}

/**
 * @param before the number of calls of this process ahead of it
 *
 * @param place that of the first of them, in the store
 */
function limitReached({ options }: PendingCall, before: number, place = 1): Limit | undefined {
  const { maxWaiters, maxAhead = Infinity } = options;
  if (before >= maxWaiters) return { maxWaiters };
  return before + place - 1 > maxAhead ? { maxWaiters, maxAhead } : undefined;
}

/**
 * Called when the waiter has to wait. Now its call counts, so there may be too many calls behind it.
 *
 * @returns these calls, with the reason
 */
export function refusedBehind(
  waiter: StoreWaiter,
  waiting: WaitingCalls,
  line: CallsInLine,
  clock: Clock,
): readonly (readonly [PendingCall, Error])[] {
  const { call: first, place, isAwaited } = waiter;
  const wasFirst = asksFirst(waiter);
  waiter.firstCall = undefined;
  const isPlaced = place !== undefined;
  if (isPlaced) {
    if (first.isUnplaced) first.isUnplaced = false;
    if (isAwaited) waiter.isAwaited = false;
  }
  if (!wasFirst && !(isPlaced && isAwaited)) return [];
  const refused: [PendingCall, Error][] = [];
  let before = 1;
  for (const call of waiting.all) {
    const limit = wasFirst || call.isUnplaced ? limitReached(call, before, place) : undefined;
    if (isPlaced && call.isUnplaced) call.isUnplaced = false;
    if (limit === undefined) before++;
    else refused.push([call, localFullError(line, call, limit, clock)]);
  }
  return refused;
}

/** Returns the error of a call to which the store has refused a place in its queue. */
export function remoteFullError(facts: Facts, { options, isUnplaced }: PendingCall, now: number): Error {
  const { maxWaiters, maxAhead = Infinity } = options;
  const limit = isUnplaced && maxAhead < maxWaiters ? { maxWaiters, maxAhead } : { maxWaiters };
  return fullError(facts, limit, 'redis', now);
}

/** Returns the error if too many calls already wait, for the holder or for an unreachable Redis. */
function localFullError({ facts }: CallsInLine, { options }: PendingCall, limit: Limit, clock: Clock): Error {
  const now = clock.now();
  noteReasons(facts, options, now, false);
  const { resource, log } = facts;
  return log.lastError ? unavailable(resource, log) : fullError(facts, limit, 'process', now);
}

type Facts = Pick<QueueFacts, 'resource' | 'log'>;
/** Contains `maxAhead` if that is the reason. */
type Limit = Pick<ResolvedLockOptions, 'maxWaiters' | 'maxAhead'>;

function fullError({ resource, log }: Facts, limit: Limit, where: 'process' | 'redis', now: number): Error {
  return new LockQueueFullError(resource, { ...limit, where, ...log.facts(now) });
}
