import { type Clock, SYSTEM_CLOCK, type Timer } from '../../core/util/clock.js';

/** The clock of a fleet, as one of its lock services sees it. */
export class InstanceClock implements Clock {
  /** Set when the application closes: it must not wait for a time that stands still. */
  isClosing = false;

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  wallNow(): number {
    return this.clock.wallNow();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    const clock = this.isClosing ? SYSTEM_CLOCK : this.clock;
    return clock.setTimer(callback, delayMs, options);
  }
}
