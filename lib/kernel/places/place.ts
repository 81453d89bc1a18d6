import type { AttemptLog } from '../store/ask.js';
import { PER_STEP, type LockOwner, type QueuedPlace } from '../store/lock-store.js';
import type { Alarm, Due, DueQueue } from '../util/alarms.js';

/** Even with a long lease, a place is kept this often: that finds changes without a message, such as a deleted key. */
const MAX_PERIOD_MS = 15_000;
/**
 * The part of its period after which a place is kept early, beside a command for others. With more than 5/8, places of
 * one length of lease share a command after a period, whenever they came: the rest of the jitter of 1/4 fits in, too.
 */
const ALONG = 2 / 3;
/** The part of its pause by which it is kept early if a command right behind another one would be sent for it alone. */
const SOON = 1 / 16;

export interface QueuedWaiter {
  readonly owner: LockOwner;
  readonly call: { readonly options: { readonly leaseMs: number; readonly attemptTimeoutMs: number } };
  readonly log: AttemptLog;
  /** The last known place in the queue, counted from 1. */
  readonly place?: number;
  /** The keeper's `losses` when the last command for the waiter was sent. */
  lossesBefore: number;
  /** Set by the keeper from the first reply with a place in the queue. */
  kept?: Place | undefined;
  /** Returns the time at which fresh holders are needed for a report to the user. */
  newsDueAt(now: number): number;
  onKept(reply: QueuedPlace, sentAt: number, now: number): void;
  /** Called when the store has not kept its place. The command is retried. */
  notKept(): void;
  ask(): void;
}

export class Place implements Due {
  dueAt = 0;
  heapIndex = -1;
  /** The time until it is due, which may be far less than its period. */
  pauseMs = 0;
  /** The command that keeps it, until that is answered or times out. */
  batch: Batch | undefined;

  constructor(
    readonly waiter: QueuedWaiter,
    readonly group: Group,
  ) {}

  get isScheduled(): boolean {
    return this.heapIndex !== -1;
  }
}

export interface Group {
  readonly fence: string;
  readonly places: DueQueue<Place>;
  /** The number of waiters with a place in it, including asking ones. */
  size: number;
  underWay: number;
  readonly alarm: Alarm;
}

export interface Batch {
  readonly group: Group;
  readonly places: readonly Place[];
  readonly sentAt: number;
  /** `true` if it holds up other groups. */
  isCounted: boolean;
  /** Rings when it counts as timed out for a place. Set until it is answered, or until that is so for all of them. */
  alarm: Alarm | undefined;
}

export function timeoutOf({ waiter, batch }: Place): number {
  return batch!.sentAt + waiter.call.options.attemptTimeoutMs;
}

/**
 * Returns the maximum interval between keeping a place, before jitter. A third of the lease leaves time for two more
 * tries.
 */
export function keepPeriodMs(leaseMs: number): number {
  return Math.min(leaseMs / 3, MAX_PERIOD_MS);
}

function periodOf({ waiter }: Place): number {
  return keepPeriodMs(waiter.call.options.leaseMs);
}

/**
 * Takes the due places. A place after two thirds of its period joins them, which costs hardly more. After a command a
 * moment ago (`isAwake`), another one is sent at once if it is due soon: a process and a Redis that are awake need less
 * for it.
 */
export function takeDue(places: DueQueue<Place>, now: number, isAwake: boolean): Place[] {
  const taken: Place[] = [];
  for (let place = places.first(); place && taken.length < PER_STEP; place = places.first()) {
    const early = taken.length > 0 ? ALONG * periodOf(place) : isAwake ? SOON * place.pauseMs : 0;
    if (place.dueAt > now + early) break;
    places.remove(place);
    taken.push(place);
  }
  return taken;
}
