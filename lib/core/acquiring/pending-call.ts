import type { Alarm, Alarms } from '../util/alarms.js';
import type { Grant } from '../holding/hold.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { onAbort } from '../util/signals.js';
import type { StoreLease } from '../holding/store-lease.js';

/** What becomes of a call, for the one who made it. */
export interface CallOutcome {
  granted(grant: Grant): void;
  failed(error: Error): void;
}

/** One call to acquire that may wait, until it is granted or fails. */
export class PendingCall implements Alarm {
  readonly giveUpAt: number;
  /** How many attempts were sent for it. */
  attempts = 0;
  dueAt = 0;
  heapIndex = -1;
  #onGivingUp: (() => void) | undefined;
  #stopListening: (() => void) | undefined;

  constructor(
    readonly options: ResolvedLockOptions,
    readonly startedAt: number,
    private readonly outcome: CallOutcome,
    private readonly alarms: Alarms,
  ) {
    this.giveUpAt = startedAt + options.waitMs;
  }

  waitedMs(now: number): number {
    return now - this.startedAt;
  }

  /** Calls back when the caller's signal aborts. */
  onAbort(callback: () => void): void {
    if (this.options.signal) this.#stopListening = onAbort(this.options.signal, callback);
  }

  /** Calls back when `waitMs` is over. */
  onGivingUp(callback: () => void): void {
    this.#onGivingUp = callback;
    this.alarms.set(this, this.giveUpAt);
  }

  ring(): void {
    this.#onGivingUp?.();
  }

  /** Somebody else sees to it that it gives up in time. */
  stopWatching(): void {
    this.alarms.cancel(this);
  }

  grant(storeLease: StoreLease, now: number): void {
    this.#end();
    this.outcome.granted({ storeLease, attempts: this.attempts, waitedMs: this.waitedMs(now), grantedAt: now });
  }

  fail(error: Error): void {
    this.#end();
    this.outcome.failed(error);
  }

  #end(): void {
    this.stopWatching();
    this.#stopListening?.();
  }
}

/** The calls that wait for their turn, first come first. It takes no room while nobody waits, as for nearly every lock. */
export class WaitingCalls {
  #calls: Set<PendingCall> | undefined;

  get size(): number {
    return this.#calls?.size ?? 0;
  }

  get first(): PendingCall | undefined {
    return this.#calls?.values().next().value;
  }

  add(call: PendingCall): void {
    (this.#calls ??= new Set()).add(call);
  }

  delete(call: PendingCall): void {
    this.#calls?.delete(call);
  }

  /** Takes the first one out. */
  next(): PendingCall | undefined {
    const { first } = this;
    if (first) this.delete(first);
    return first;
  }

  /** Takes all of them out. */
  clear(): PendingCall[] {
    const calls = [...(this.#calls ?? [])];
    this.#calls = undefined;
    return calls;
  }
}
