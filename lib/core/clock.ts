import { inRootContext } from './async-contexts.js';

/** A timer that a {@link Clock} has set. */
export interface Timer {
  cancel(): void;
}

/** Where core takes the time from. Injected, so that every rule about time has a deterministic test. */
export interface Clock {
  /** Monotonic milliseconds. Only differences mean anything; a change of the wall clock does not touch it. */
  now(): number;
  /** Milliseconds since the Unix epoch, by this machine's wall clock. Never used to decide who holds a lock. */
  wallNow(): number;
  /**
   * Calls back once, `delayMs` from now, in the async context of no caller. `background` timers do not keep the process alive.
   */
  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer;
}

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class SystemClock implements Clock {
  now(): number {
    return performance.now();
  }

  wallNow(): number {
    return Date.now();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    // Rounded up: a timer that fires a fraction early would find its deadline still ahead, and spin.
    const wholeMs = Math.min(Math.max(Math.ceil(delayMs), 0), LONGEST_TIMER_MS);
    // One timer serves many callers: it must keep none of their contexts, nor run the others' callbacks in it.
    const timer = inRootContext(() => setTimeout(callback, wholeMs));
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  }
}
