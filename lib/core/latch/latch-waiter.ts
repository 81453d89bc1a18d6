import type { Alarm, Alarms } from '../util/alarms.js';
import { onAbort } from '../util/signals.js';

/** Settles the promise of a call that waits. */
export interface LatchWaitOutcome {
  opened(): void;
  failed(error: Error): void;
}

/** One call to wait for a latch, until the latch opens or the call fails. */
export class LatchWaiter implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  #onGivingUp: (() => void) | undefined;
  #stopListening: (() => void) | undefined;

  constructor(
    readonly startedAt: number,
    private readonly waitMs: number,
    private readonly signal: AbortSignal | undefined,
    private readonly outcome: LatchWaitOutcome,
    private readonly alarms: Alarms,
  ) {}

  /** Calls back when `waitMs` is over, or when the caller's signal aborts. */
  watch(onGivingUp: () => void, onAborted: () => void): void {
    this.#onGivingUp = onGivingUp;
    this.alarms.set(this, this.startedAt + this.waitMs);
    if (this.signal) this.#stopListening = onAbort(this.signal, onAborted);
  }

  ring(): void {
    this.#onGivingUp?.();
  }

  open(): void {
    this.#end();
    this.outcome.opened();
  }

  fail(error: Error): void {
    this.#end();
    this.outcome.failed(error);
  }

  #end(): void {
    this.alarms.cancel(this);
    this.#stopListening?.();
  }
}
