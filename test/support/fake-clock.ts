import type { Clock, Timer } from '../../lib/core/clock.js';

interface FakeTimer {
  readonly callback: () => void;
  readonly dueAt: number;
}

/** More timers than this in one call of advance() is a loop that never pauses. */
const MOST_TIMERS = 100_000;

/** Lets everything run that waits for nothing but settled promises. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A clock that moves only when the test says so. */
export class FakeClock implements Clock {
  /** Not 0, so that nothing works by accident with times that were never set. */
  #now = 70_000;
  readonly #wallBegin: number;
  readonly #timers = new Set<FakeTimer>();
  /** Called after each timer, once what it set off has settled. */
  onStep: () => void = () => {};
  /** How far it moves with each look at it: a real one never stands still between two lines. */
  lookMs = 0;

  constructor(startsAt = Date.UTC(2026, 0, 1)) {
    this.#wallBegin = startsAt - this.#now;
  }

  now(): number {
    this.#now += this.lookMs;
    return this.#now;
  }

  wallNow(): number {
    return this.#wallBegin + this.#now;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    if (!Number.isFinite(delayMs)) throw new RangeError(`no timer can be set for ${delayMs} ms`);
    const timer = { callback, dueAt: this.#now + Math.max(0, delayMs) };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Time passes: every timer that falls due runs at its own time, and what it sets off settles before the next one. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let ran = 0; ; ran++) {
      if (ran > MOST_TIMERS) throw new Error(`more than ${MOST_TIMERS} timers ran within ${ms} ms`);
      const timer = this.#firstDue(end);
      if (timer === undefined) break;
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, timer.dueAt);
      timer.callback();
      await settle();
      this.onStep();
    }
    this.#now = end;
  }

  /** The process stands still: time passes and no timer runs. Those that fell due are late, as after SIGSTOP. */
  standStill(ms: number): void {
    this.#now += ms;
  }

  #firstDue(end: number): FakeTimer | undefined {
    let first: FakeTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueAt <= end && (first === undefined || timer.dueAt < first.dueAt)) first = timer;
    }
    return first;
  }
}
