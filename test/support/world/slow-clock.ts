import { type Clock, SystemClock, type Timer } from '../../../lib/kernel/util/clock.js';

/** Runs slower than the machine's clock by a factor: for bounds in lib that a busy machine would not keep. */
export class SlowClock implements Clock {
  readonly #clock = new SystemClock();

  constructor(private readonly slowness: number) {}

  now(): number {
    return this.#clock.now() / this.slowness;
  }

  wallNow(): number {
    return this.#clock.wallNow();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    return this.#clock.setTimer(callback, delayMs * this.slowness, options);
  }
}
