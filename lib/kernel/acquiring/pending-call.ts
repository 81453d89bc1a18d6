import type { Alarm, Alarms } from '../util/alarms.js';
import type { Grant, Hold } from '../holding/hold.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner } from '../store/lock-store.js';
import type { DeadlockAlarm } from '../deadlocks/deadlock-watch.js';
import type { StoreLease } from '../holding/store-lease.js';
import type { SeveralParts } from '../holding/several-parts.js';
import { LONG_WAIT_MS, noteWait } from './waits.js';
import type { Origin } from '../util/call-site.js';
import { onAbort } from '../util/signals.js';
import { type AttemptLog, givesUpAt, type WaitingTimes } from '../store/ask.js';
import type { DeadlockedCall } from '../api/busy-errors.js';

/** The maximum age of reported holders. */
export const NEWS_MS = 1_000;

export interface WaitLimits extends WaitingTimes {
  readonly signal?: AbortSignal | undefined;
}

export interface WaitingTogether {
  readonly log: AttemptLog;
  /** Checks without a command whether the store is unreachable: calls then give up sooner. */
  checkReachable(): void;
}

export interface WaiterListener extends WaitingTogether {
  /** `true` if the place in the queue of the store is reported to a caller, and should be fresh. */
  readonly reportsPlaces: boolean;
  granted(fencingToken: number, sentAt: number, now: number): void;
  outOfTime(): void;
  waitsOn(now: number): void;
  waitsForStore(): void;
  /** @param newer the instance of a newer call, for which this one has no place */
  full(now: number, newer?: string): void;
  /** The call of the waiter fails. */
  refused(error: Error): void;
  holds(owner: LockOwner): boolean;
}

export interface NestedCall {
  readonly holds: readonly Hold[];
  readonly origin: Origin | undefined;
}

/** One call that waits, until it succeeds or fails: to acquire a lock, or until a resource is free. */
export class PendingCall<Result = Grant, Options extends WaitLimits = ResolvedLockOptions> implements Alarm {
  /** The attempts that were sent for it. Calls that wait in a queue share their attempts, which do not count here. */
  attempts = 0;
  /** The other resources that the caller wants. Only set for calls for several. */
  declare several?: SeveralParts;
  /** Only set while it waits for its turn; see {@link WaitingCalls}. */
  declare link?: Link | undefined;
  /** `true` inside of work under a lease. A shutdown drains that work first. */
  isInWork = false;
  declare nested?: NestedCall;
  /** With `maxAhead`: `true` until its place is known, or that of the call behind which it joined. */
  declare isUnplaced?: boolean;
  /** Looks for a deadlock before the wait ends. Only set for a waiting call inside of work under a lease. */
  declare alarm?: DeadlockAlarm;
  /** The calls that wait for each other, this one first. Only set once that is found. */
  declare deadlock?: readonly DeadlockedCall[];
  #told: 'nothing' | 'wait' | 'longWait' = 'nothing';
  dueAt = 0;
  heapIndex = -1;
  #onTime: ((isOver: boolean) => void) | undefined;
  #stopListening: (() => void) | undefined;

  constructor(
    readonly options: Options,
    readonly startedAt: number,
    private readonly outcome: { succeeded(result: Result): void; failed(error: Error): void },
    private readonly alarms: Alarms,
    private readonly waitsWith: WaitingTogether,
  ) {}

  /** The time at which the wait ends; sooner while the store is unreachable. */
  get giveUpAt(): number {
    return givesUpAt(this.startedAt, this.options, this.waitsWith.log.unreachableSince);
  }

  waitedMs(now: number): number {
    return now - this.startedAt;
  }

  onAbort(callback: () => void): void {
    if (this.options.signal) this.#stopListening = onAbort(this.options.signal, callback);
  }

  onGivingUp(callback: () => void): void {
    this.#onTime = (isOver) => {
      if (isOver) callback();
    };
    this.alarms.set(this, this.giveUpAt);
  }

  /** The same, with `true`; and once before that, with `false`, when it has waited for long. */
  onTime(callback: (isOver: boolean) => void): void {
    this.#onTime = callback;
    this.alarms.set(this, Math.min(this.giveUpAt, this.startedAt + LONG_WAIT_MS));
  }

  /** For a call with a timer of its own. */
  onStoreUnreachable(): void {
    const { giveUpAt } = this;
    if (giveUpAt < this.dueAt) this.alarms.set(this, giveUpAt);
  }

  ring(): void {
    // The store may have recovered.
    if (this.waitsWith.log.unreachableSince !== undefined) this.waitsWith.checkReachable();
    const isOver = this.dueAt >= this.giveUpAt || this.alarms.isStopped;
    // Before the callback, which may end the call.
    if (!isOver) {
      const longAt = this.startedAt + LONG_WAIT_MS;
      this.alarms.set(this, this.dueAt < longAt ? Math.min(this.giveUpAt, longAt) : this.giveUpAt);
    }
    this.#onTime?.(isOver);
  }

  get hasWaited(): boolean {
    return this.#told !== 'nothing';
  }

  /**
   * Returns the time at which fresh holders are needed for a report: to the observers after a long wait, if they
   * listen, and to the caller when it gives up. A short wait reports the holders of its one answer.
   */
  newsDueAt(now: number, isLongWaitTold: boolean, attemptTimeoutMs: number): number {
    const longWaitAt = isLongWaitTold && this.#told !== 'longWait' ? this.startedAt + LONG_WAIT_MS : Infinity;
    // Soon enough that a command without an answer has timed out by then.
    const silenceAt = this.giveUpAt - 1.25 * attemptTimeoutMs;
    const holdersAt = this.giveUpAt - NEWS_MS;
    const endsAt = silenceAt > now ? silenceAt : holdersAt > now ? holdersAt : Infinity;
    return Math.min(longWaitAt > now ? longWaitAt : Infinity, endsAt);
  }

  /** Returns the event that is due for observers: `waiting`, or later `waitingLong`. Returns each of them once. */
  reportDue(now: number): 'waiting' | 'waitingLong' | undefined {
    if (this.#told === 'nothing') {
      this.#told = 'wait';
      return 'waiting';
    }
    if (this.#told !== 'wait' || now < this.startedAt + LONG_WAIT_MS) return undefined;
    this.#told = 'longWait';
    return 'waitingLong';
  }

  /** Stops the alarm for `waitMs`: from now on the waiter in the store watches the time. */
  stopWatching(): void {
    this.alarms.cancel(this);
  }

  succeed(result: Result): void {
    this.end();
    this.outcome.succeeded(result);
  }

  fail(error: Error): void {
    this.end();
    noteWait(error, this.startedAt, this.hasWaited);
    this.outcome.failed(error);
  }

  private end(): void {
    this.stopWatching();
    this.alarm?.cancel();
    this.#stopListening?.();
  }
}

export function grant(call: PendingCall, storeLease: StoreLease, now: number): void {
  const { attempts, hasWaited } = call;
  call.succeed({ storeLease, attempts, waitedMs: call.waitedMs(now), hasWaited, grantedAt: now });
}

interface Link {
  readonly call: PendingCall;
  before: Link | undefined;
  after: Link | undefined;
}

/**
 * The pending calls, first come, first served. A linked list, because any call can give up: to find the first entry of
 * a `Set`, the engine would skip all that have left.
 */
export class WaitingCalls {
  #first: Link | undefined;
  #last: Link | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): PendingCall | undefined {
    return this.#first?.call;
  }

  get all(): PendingCall[] {
    const calls: PendingCall[] = [];
    for (let link = this.#first; link; link = link.after) calls.push(link.call);
    return calls;
  }

  add(call: PendingCall): void {
    const link: Link = { call, before: this.#last, after: undefined };
    call.link = link;
    if (this.#last) this.#last.after = link;
    else this.#first = link;
    this.#last = link;
    this.#size++;
  }

  delete(call: PendingCall): void {
    const { link } = call;
    if (!link) return;
    const { before, after } = link;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    // A link that has left must not lead to the next one: once the garbage collector has promoted it, it would keep all
    // later ones alive until the next major collection.
    call.link = link.before = link.after = undefined;
    this.#size--;
  }

  next(): PendingCall | undefined {
    const { first } = this;
    if (first) this.delete(first);
    return first;
  }
}
