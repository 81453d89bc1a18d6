import { inRootContext } from '../../kernel/util/async-contexts.js';
import { type Due, DueQueue } from '../../kernel/util/alarms.js';
import type { Clock, Timer } from '../../kernel/util/clock.js';
import { TestKitError } from './test-kit-error.js';
import { settle } from '../../kernel/util/promises.js';

interface SetTimer {
  readonly callback: () => void;
}

/** The timers that are due at one time, in the order in which they were set. */
interface TimersAt extends Due {
  readonly callbacks: Set<SetTimer>;
}

/** More timers than this in one call of advance() is a loop that never pauses. */
const MAX_TIMERS = 100_000;

/** A clock that only a test moves. The fake timers of a test runner do not affect it. */
export class ManualClock implements Clock {
  /** Not 0, so that nothing works by accident with times that were never set. */
  #now = 70_000;
  readonly #wallBegin: number;
  readonly #queue = new DueQueue<TimersAt>();
  /** The timers of the queue, by time. */
  readonly #dueAt = new Map<number, TimersAt>();
  /** Called after each timer, once its effects have settled. */
  onStep: () => void = () => {};
  /** The step of each read of the time: a real clock always advances between two lines. */
  stepMs = 0;

  /** @param startsAt the wall clock at the beginning, in milliseconds since the Unix epoch */
  constructor(startsAt = Date.UTC(2026, 0, 1)) {
    this.#wallBegin = startsAt - this.#now;
  }

  now(): number {
    this.#now += this.stepMs;
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

  get timers(): number {
    return [...this.#dueAt.values()].reduce((sum, { callbacks }) => sum + callbacks.size, 0);
  }

  /** The milliseconds until the next timer is due; `undefined` without one. */
  get nextTimerMs(): number | undefined {
    const next = this.#queue.first();
    return next && Math.max(0, next.dueAt - this.#now);
  }

  /**
   * Lets time pass: every due timer runs at its own time, and its effects settle before the next one.
   *
   * @throws TestKitError when timers continue without an end
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let ran = 0; ; ran++) {
      const timers = this.#queue.first();
      if (timers === undefined || timers.dueAt > end) break;
      if (ran === MAX_TIMERS) throw endless(ms);
      const [timer] = timers.callbacks;
      this.#remove(timer!, timers);
      this.#now = Math.max(this.#now, timers.dueAt);
      // Not in the async context of the test, which may hold a lock.
      inRootContext(timer!.callback);
      await settle();
      this.onStep();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Blocks the process: time passes and no timer runs. Due timers fire late, as after SIGSTOP. */
  block(ms: number): void {
    this.#now += ms;
  }

  #timersAt(dueAt: number): TimersAt {
    let timers = this.#dueAt.get(dueAt);
    if (timers === undefined) {
      timers = { dueAt, heapIndex: -1, callbacks: new Set() };
      this.#dueAt.set(dueAt, timers);
      this.#queue.put(timers);
    }
    return timers;
  }

  #remove(timer: SetTimer, timers: TimersAt): void {
    if (!timers.callbacks.delete(timer) || timers.callbacks.size > 0) return;
    this.#queue.remove(timers);
    this.#dueAt.delete(timers.dueAt);
  }
}

function endless(ms: number): TestKitError {
  return new TestKitError(
    'endless',
    `More than ${MAX_TIMERS} timers ran within advance(${ms}): a retry without a pause, or too long a time at once. ` +
      'Advance by less, or give the retry a pause.',
  );
}
