import type { Clock, Timer } from '../../../lib/core/util/clock.js';
import { type Due, DueQueue } from '../../../lib/core/util/alarms.js';

/** What falls due at one time, in the order in which it was set. */
interface FakeTimers extends Due {
  readonly callbacks: Set<{ readonly callback: () => void }>;
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
  readonly #queue = new DueQueue<FakeTimers>();
  /** Those of the queue, by time. */
  readonly #dueAt = new Map<number, FakeTimers>();
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
    const timer = { callback };
    const timers = this.#timersAt(this.#now + Math.max(0, delayMs));
    timers.callbacks.add(timer);
    return { cancel: () => this.#remove(timer, timers) };
  }

  /** How many timers are set. */
  get timers(): number {
    return [...this.#dueAt.values()].reduce((sum, { callbacks }) => sum + callbacks.size, 0);
  }

  /** Time passes: every timer that falls due runs at its own time, and what it sets off settles before the next one. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let ran = 0; ; ran++) {
      if (ran > MOST_TIMERS) throw new Error(`more than ${MOST_TIMERS} timers ran within ${ms} ms`);
      const timers = this.#queue.first();
      if (timers === undefined || timers.dueAt > end) break;
      const [timer] = timers.callbacks;
      this.#remove(timer!, timers);
      this.#now = Math.max(this.#now, timers.dueAt);
      timer!.callback();
      await settle();
      this.onStep();
    }
    this.#now = end;
  }

  /** The process stands still: time passes and no timer runs. Those that fell due are late, as after SIGSTOP. */
  standStill(ms: number): void {
    this.#now += ms;
  }

  #timersAt(dueAt: number): FakeTimers {
    let timers = this.#dueAt.get(dueAt);
    if (timers === undefined) {
      timers = { dueAt, heapIndex: -1, callbacks: new Set() };
      this.#dueAt.set(dueAt, timers);
      this.#queue.put(timers);
    }
    return timers;
  }

  #remove(timer: { readonly callback: () => void }, timers: FakeTimers): void {
    if (!timers.callbacks.delete(timer) || timers.callbacks.size > 0) return;
    this.#queue.remove(timers);
    this.#dueAt.delete(timers.dueAt);
  }
}
