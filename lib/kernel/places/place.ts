import type { AttemptLog } from './asking.js';
import { KEPT_AT_ONCE, type LockOwner, type QueuedPlace } from '../store/lock-store.js';
import type { Alarm, Due, DueQueue } from '../util/alarms.js';

/** However long its lease is, a place is kept this often: that finds what no message tells, such as a deleted key. */
const MAX_PERIOD_MS = 15_000;
/**
 * Which part of its period a place is kept early, where a command is sent for others. With more than 5/8, places of one
 * length of lease share a command after a period, whenever they came: what is left of the jitter of 1/4 fits in, too.
 */
const ALONG = 2 / 3;
/** Which part of its pause it is kept early where a command would be sent for it alone, right behind another one. */
const SOON = 1 / 16;

/** A waiter in the queue of the store. */
export interface QueuedWaiter {
  readonly owner: LockOwner;
  readonly call: { readonly options: { readonly leaseMs: number; readonly attemptTimeoutMs: number } };
  readonly log: AttemptLog;
  /** The last known place in the queue, counted from 1. */
  readonly place?: number;
  /** What `losses` of the keeper was when the last command for the waiter was sent. */
  lossesBefore: number;
  /** Set by the keeper, from the first answer that says that it is in the queue. */
  kept?: Place | undefined;
  /** When the holders should be known next, because they are told to the user. */
  newsDueAt(now: number): number;
  onKept(reply: QueuedPlace, sentAt: number, now: number): void;
  /** The store has not kept its place. That is tried again. */
  notKept(): void;
  ask(): void;
}

export class Place implements Due {
  dueAt = 0;
  heapIndex = -1;
  /** For how long it rests until it is due. That may be far less than its period. */
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

/** The places that one step of the store can keep. */
export interface Group {
  readonly fence: string;
  readonly places: DueQueue<Place>;
  /** How many waiters have a place in it, also while they ask. */
  size: number;
  underWay: number;
  /** Rings when the first place is due. */
  readonly alarm: Alarm;
}

export interface Batch {
  readonly group: Group;
  readonly places: readonly Place[];
  readonly sentAt: number;
  /** Whether it holds up other groups. */
  isCounted: boolean;
  /** Rings when it counts as timed out for a place. Set until it is answered, or until that is so for all of them. */
  alarm: Alarm | undefined;
}

/** When the call of this place counts its command as timed out. */
export function timeoutOf({ waiter, batch }: Place): number {
  return batch!.sentAt + waiter.call.options.attemptTimeoutMs;
}

/** How often a place is kept at least, before jitter. A third of the lease leaves time for two more tries. */
export function keepPeriodMs(leaseMs: number): number {
  return Math.min(leaseMs / 3, MAX_PERIOD_MS);
}

function periodOf({ waiter }: Place): number {
  return keepPeriodMs(waiter.call.options.leaseMs);
}

/**
 * Those that are due. What is due within two thirds of its period goes along with them: that costs hardly more. After a
 * command a moment ago (`isAwake`), another one goes at once if it is due soon: a process and a Redis that are awake
 * need less for it.
 */
export function takeDue(places: DueQueue<Place>, now: number, isAwake: boolean): Place[] {
  const taken: Place[] = [];
  for (let place = places.first(); place && taken.length < KEPT_AT_ONCE; place = places.first()) {
    const early = taken.length > 0 ? ALONG * periodOf(place) : isAwake ? SOON * place.pauseMs : 0;
    if (place.dueAt > now + early) break;
    places.remove(place);
    taken.push(place);
  }
  return taken;
}
