import type { Clock, Timer } from '../../../core/util/clock.js';

/** A timer of a process, by its own time. */
interface ProcessTimer {
  readonly dueAt: number;
  readonly callback: () => void;
  timer: Timer | undefined;
}

/**
 * The clock of one process among several. The process can stand still: for the others no time passes meanwhile. When it
 * goes on, more time has passed for it, and the timers that fell due fire late.
 */
export class ProcessClock implements Clock {
  /** How much longer it is for this process. */
  #aheadMs = 0;
  #isStanding = false;
  readonly #timers = new Set<ProcessTimer>();

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now() + this.#aheadMs;
  }

  wallNow(): number {
    return this.clock.wallNow() + this.#aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer: ProcessTimer = { dueAt: this.now() + delayMs, callback, timer: undefined };
    this.#timers.add(timer);
    if (!this.#isStanding) this.#arm(timer);
    return { cancel: () => this.#disarm(timer) };
  }

  #arm(timer: ProcessTimer): void {
    const fire = (): void => {
      this.#disarm(timer);
      timer.callback();
    };
    timer.timer = this.clock.setTimer(fire, timer.dueAt - this.now());
  }

  #disarm(timer: ProcessTimer): void {
    this.#timers.delete(timer);
    timer.timer?.cancel();
  }

  standStill(ms: number): void {
    this.#isStanding = true;
    this.#aheadMs += ms;
    for (const { timer } of this.#timers) timer?.cancel();
  }

  /** Fires what has fallen due while it stood still. */
  goOn(): void {
    if (!this.#isStanding) return;
    this.#isStanding = false;
    const timers = [...this.#timers].sort((one, other) => one.dueAt - other.dueAt);
    for (const timer of timers) {
      // One that was fired may have cancelled it.
      if (!this.#timers.has(timer)) continue;
      if (timer.dueAt > this.now()) this.#arm(timer);
      else {
        this.#disarm(timer);
        timer.callback();
      }
    }
  }
}
