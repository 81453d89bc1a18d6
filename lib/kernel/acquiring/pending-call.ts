import type { Alarm, Alarms } from '../util/alarms.js';
import type { Grant, Hold } from '../holding/hold.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { ModeConflict, LockOwner } from '../store/lock-store.js';
import type { DeadlockedCall } from '../api/errors.js';
import type { DeadlockAlarm } from '../deadlocks/deadlock-watch.js';
import type { StoreLease } from '../holding/store-lease.js';
import type { SeveralParts } from '../holding/several-parts.js';
import { LONG_WAIT_MS, noteWait } from './waits.js';
import type { Origin } from '../util/call-site.js';
import { onAbort } from '../util/signals.js';
import { type AttemptLog, givesUpAt, type WaitingTimes } from '../places/asking.js';

/** What is told of the holders should be no older than this. */
export const NEWS_MS = 1_000;

/** How long a call waits at most. */
export interface WaitLimits extends WaitingTimes {
  readonly signal?: AbortSignal | undefined;
}

/** Calls that wait for the same, and ask the store together. */
export interface WaitingTogether {
  /** What they have found out. */
  readonly log: AttemptLog;
  /** Looks whether the store is away, which is known without a command. While it is, they wait for less. */
  checkReachable(): void;
}

/** The queue that a waiter asks for. */
export interface WaiterListener extends WaitingTogether {
  granted(fencingToken: number, sentAt: number, now: number): void;
  outOfTime(): void;
  /** Its call is not granted yet. */
  waitsOn(now: number): void;
  waitsForStore(): void;
  /** @param newer the instance of a newer call, for which this one has no place */
  full(now: number, newer?: string): void;
  mismatched(found: ModeConflict): void;
  /** The store will never grant it. */
  refused(): void;
  /** Whether this process holds the lock of this owner. */
  holds(owner: LockOwner): boolean;
}

/** What else is known of a call that is made inside of work under a lease. */
export interface NestedCall {
  /** What that work holds, the innermost first. */
  readonly holds: readonly Hold[];
  /** Recorded inside, if it was. */
  readonly origin: Origin | undefined;
}

/** One call that waits, until it succeeds or fails: to acquire a lock, or until a resource is free. */
export class PendingCall<Result = Grant, Options extends WaitLimits = ResolvedLockOptions> implements Alarm {
  /** How many attempts were sent for it. Calls that wait until a resource is free share their attempts, which do not count here. */
  attempts = 0;
  /** What else the caller wants. Only set where it wants several resources. */
  declare several?: SeveralParts;
  /** Only set while it waits for its turn; see {@link WaitingCalls}. */
  declare link?: Link | undefined;
  /** Whether it is made inside of work under a lease. At a shutdown, that work is drained first. */
  isInWork = false;
  /** Only set where it is made inside of such work. */
  declare nested?: NestedCall;
  /** Looks for a deadlock before the wait is over. Only set where it is made inside of such work, and waits. */
  declare alarm?: DeadlockAlarm;
  /** The calls that wait for each other, this one first. Only set once that is found. */
  declare deadlock?: readonly DeadlockedCall[];
  /** What the observers were told: nothing, that it waits, or that it has waited for long. */
  #told: 'nothing' | 'wait' | 'longWait' = 'nothing';
  dueAt = 0;
  heapIndex = -1;
  #onTime: ((isOver: boolean) => void) | undefined;
  #stopListening: (() => void) | undefined;

  constructor(
    readonly options: Options,
    readonly startedAt: number,
    /** How the caller learns what became of it. */
    private readonly outcome: { succeeded(result: Result): void; failed(error: Error): void },
    private readonly alarms: Alarms,
    private readonly waitsWith: WaitingTogether,
  ) {}

  /** Sooner while the store is away. */
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

  /** The store is away now. Only for a call that watches the time itself. */
  onStoreUnreachable(): void {
    const { giveUpAt } = this;
    if (giveUpAt < this.dueAt) this.alarms.set(this, giveUpAt);
  }

  ring(): void {
    // It may be back.
    if (this.waitsWith.log.unreachableSince !== undefined) this.waitsWith.checkReachable();
    const isOver = this.dueAt >= this.giveUpAt || this.alarms.isStopped;
    // Before the callback, which may end the call.
    if (!isOver) {
      const longAt = this.startedAt + LONG_WAIT_MS;
      this.alarms.set(this, this.dueAt < longAt ? Math.min(this.giveUpAt, longAt) : this.giveUpAt);
    }
    this.#onTime?.(isOver);
  }

  /** Whether the observers were told that it waits. */
  get hasWaited(): boolean {
    return this.#told !== 'nothing';
  }

  /**
   * When the holders should be known next, because they are told: to the observers when it has waited for long, if they
   * want to know, and to the caller when it gives up. A short wait tells those that its one answer named.
   */
  newsDueAt(now: number, isLongWaitTold: boolean, attemptTimeoutMs: number): number {
    const longWaitAt = isLongWaitTold && this.#told !== 'longWait' ? this.startedAt + LONG_WAIT_MS : Infinity;
    // Soon enough that a command without an answer has timed out by then.
    const silenceAt = this.giveUpAt - 1.25 * attemptTimeoutMs;
    const holdersAt = this.giveUpAt - NEWS_MS;
    const endsAt = silenceAt > now ? silenceAt : holdersAt > now ? holdersAt : Infinity;
    return Math.min(longWaitAt > now ? longWaitAt : Infinity, endsAt);
  }

  /** It is not granted at once, and the observers are to be told. @returns `true` only once */
  beginsToWait(): boolean {
    if (this.#told !== 'nothing') return false;
    this.#told = 'wait';
    return true;
  }

  /** Whether it has waited for long, and the observers are to be told. @returns `true` only once */
  shouldReport(now: number): boolean {
    if (this.#told !== 'wait' || now < this.startedAt + LONG_WAIT_MS) return false;
    this.#told = 'longWait';
    return true;
  }

  /** Stops the alarm for `waitMs`: from now on the waiter in the store watches the time. */
  stopWatching(): void {
    this.alarms.cancel(this);
  }

  succeed(result: Result): void {
    this.#end();
    this.outcome.succeeded(result);
  }

  fail(error: Error): void {
    this.#end();
    noteWait(error, this.startedAt, this.hasWaited);
    this.outcome.failed(error);
  }

  #end(): void {
    this.stopWatching();
    this.alarm?.cancel();
    this.#stopListening?.();
  }
}

export function grant(call: PendingCall, storeLease: StoreLease, now: number): void {
  const { attempts, hasWaited } = call;
  call.succeed({ storeLease, attempts, waitedMs: call.waitedMs(now), hasWaited, grantedAt: now });
}

/** A call in the row of those that wait, and its neighbours. */
interface Link {
  readonly call: PendingCall;
  before: Link | undefined;
  after: Link | undefined;
}

/**
 * The calls that wait for their turn, first come, first served. A list of links: any of them can give up, and the first
 * of many costs no more than that of few. The first entry of a `Set` would be looked for behind all that have left.
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

  /** Does nothing if it does not wait here. */
  delete(call: PendingCall): void {
    const { link } = call;
    if (!link) return;
    const { before, after } = link;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    // A link that has left must not lead to the next one. Where the garbage collector has moved it to the old objects, it
    // would keep all that came later until the next major collection.
    call.link = link.before = link.after = undefined;
    this.#size--;
  }

  next(): PendingCall | undefined {
    const { first } = this;
    if (first) this.delete(first);
    return first;
  }
}
