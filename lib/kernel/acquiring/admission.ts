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

/** Calls with `maxAhead` whose place is not known yet, or was not when they joined behind the call of the waiter. */
const unplaced = new WeakSet<PendingCall>();
/** Waiters with such calls behind their own. */
const awaited = new WeakSet<Asking>();

/** Begins to ask for a call that waits for no other one. It may find the resource free, so it does not count yet. */
export function beginsFirst(waiter: Asking): void {
  waiter.firstCall = waiter.call;
  if (waiter.call.options.maxAhead !== undefined) unplaced.add(waiter.call);
}

function asksFirst(waiter: Asking | undefined): boolean {
  return waiter?.firstCall !== undefined && waiter.firstCall === waiter.call;
}

/**
 * Returns true if the call must be in the queue of the store although this process holds the resource: its place there
 * records its order.
 */
export function needsPlace({ newest, maxAhead }: ResolvedLockOptions): boolean {
  return newest !== undefined || maxAhead !== undefined;
}

/** Returns why a call cannot wait behind all calls of the line, if too many wait before it. */
export function refusalOf(call: PendingCall, waiter: Asking | undefined, line: Line, clock: Clock): Error | undefined {
  const before = line.size - (asksFirst(waiter) ? 1 : 0);
  const limit = limitReached(call, before, waiter?.place);
  if (limit !== undefined) return localFullError(line, call, limit, clock);
  if (call.options.maxAhead !== undefined && waiter && waiter.place === undefined) {
    unplaced.add(call);
    awaited.add(waiter);
  }
  return undefined;
}

/** @param before the calls of this process before it @param place that of the first of them, in the store */
function limitReached(
  { options: { maxWaiters, maxAhead = Infinity } }: PendingCall,
  before: number,
  place = 1,
): Limit | undefined {
  if (before >= maxWaiters) return { maxWaiters };
  return before + place - 1 > maxAhead ? { maxWaiters, maxAhead } : undefined;
}

/** The waiter has to wait. Now its call counts, so calls behind it may be too many. @returns those, and why */
export function refusedBehind(
  waiter: Asking,
  waiting: WaitingCalls,
  line: Line,
  clock: Clock,
): readonly (readonly [PendingCall, Error])[] {
  const { call: first, place } = waiter;
  const wasFirst = asksFirst(waiter);
  waiter.firstCall = undefined;
  if (place !== undefined && first.options.maxAhead !== undefined) unplaced.delete(first);
  const isPlaced = place !== undefined && awaited.delete(waiter);
  if (!wasFirst && !isPlaced) return [];
  const refused: [PendingCall, Error][] = [];
  let before = 1;
  for (const call of waiting.all) {
    const limit = wasFirst || unplaced.has(call) ? limitReached(call, before, place) : undefined;
    if (place !== undefined) unplaced.delete(call);
    if (limit === undefined) before++;
    else refused.push([call, localFullError(line, call, limit, clock)]);
  }
  return refused;
}

/** The limits with which a waiter asks. One that cancels older calls joins once: its place decides which one is newer. */
export function queueingOf({ call, place }: Asking, sentAt: number): Queueing {
  const { newest } = call.options;
  const maxWaiters = isBoundByAhead(call) ? call.options.maxAhead! + 1 : call.options.maxWaiters;
  if (!newest?.cancels) return { sentAt, maxWaiters };
  return { sentAt, maxWaiters: place === undefined ? maxWaiters : 0, age: ageOf(call, sentAt) };
}

/** Returns true if `maxAhead` bounds the place that the store gives to the call. One that has a place may lose it. */
function isBoundByAhead(call: PendingCall): boolean {
  const { maxWaiters, maxAhead } = call.options;
  return maxAhead !== undefined && maxAhead < maxWaiters && unplaced.has(call);
}

/** The store has refused the call a place in its queue. */
export function remoteFullError(facts: Facts, call: PendingCall, now: number): LockQueueFullError {
  const { maxWaiters, maxAhead } = call.options;
  return fullError(facts, isBoundByAhead(call) ? { maxWaiters, maxAhead } : { maxWaiters }, 'redis', now);
}

/** Too many wait already, for the holder or for a Redis that cannot be reached. */
function localFullError({ facts }: Line, { options }: PendingCall, limit: Limit, clock: Clock): Error {
  const now = clock.now();
  noteReasons(facts, options, now, false);
  const { resource, log } = facts;
  return log.lastError ? unavailable(resource, log) : fullError(facts, limit, 'process', now);
}

type Facts = Pick<QueueFacts, 'resource' | 'log'>;
/** With `maxAhead` if that is the reason. */
type Limit = Pick<ResolvedLockOptions, 'maxWaiters' | 'maxAhead'>;

function fullError(
  { resource, log }: Facts,
  limit: Limit,
  where: 'process' | 'redis',
  now: number,
): LockQueueFullError {
  return new LockQueueFullError(resource, { ...limit, where }, log.attempts, log.holderTtlMs, log.holders(now));
}
