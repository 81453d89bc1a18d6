import os from 'node:os';
import { inRootContext } from './async-contexts.js';

/** A timer that a {@link Clock} has set. */
export interface Timer {
  cancel(): void;
}

/** Where core takes the time from. Injected, so that every rule about time has a deterministic test. */
export interface Clock {
  /**
   * Monotonic milliseconds, which go on while the machine is suspended. Only differences mean anything; a change of the
   * wall clock does not touch it.
   */
  now(): number;
  /** Milliseconds since the Unix epoch, by this machine's wall clock. Never used to decide who holds a lock. */
  wallNow(): number;
  /**
   * Calls back once, `delayMs` from now, in the async context of no caller. `background` timers do not keep the process
   * alive.
   */
  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer;
}

/** What a {@link SystemClock} reads. */
export interface TimeSources {
  /** Milliseconds. Stands still while a Linux machine is suspended. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch. Steps when the clock is set. */
  wallMs(): number;
  /**
   * Seconds since the machine was started, with the time it was suspended; NaN where that is not known. Takes a hundred
   * times as long.
   */
  uptimeSeconds(): number;
  setTimeout(callback: () => void, delayMs: number): Pick<NodeJS.Timeout, 'ref' | 'unref'>;
  clearTimeout(timer: Pick<NodeJS.Timeout, 'ref' | 'unref'>): void;
}

const OF_THIS_MACHINE: TimeSources = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  uptimeSeconds() {
    try {
      return os.uptime();
    } catch {
      return NaN;
    }
  },
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/**
 * Of looks that follow one another sooner than this, one compares the clocks. What a process does within so short a
 * time of its own it could as well have done before the suspend: the two cannot be told apart.
 */
const COMPARE_EVERY_MS = 0.1;
/** By how much the wall clock must leave the monotonic one behind before the clock asks why. */
const JUMP_MS = 20;
/** How exact the uptime is: hundredths of a second, or whole seconds where `/proc/uptime` cannot be read. */
const UPTIME_STEP_MS = { fine: 10, coarse: 1_000 };
/** How long asking for it takes at most, unless this process stood still meanwhile; and how often it is asked then. */
const UPTIME_ASKED_MS = 2;
const MOST_UPTIMES = 4;
/**
 * Timers stand still in a suspend. One that is set for longer looks at the clock in between, so it is at most this
 * late.
 */
const LONGEST_SLEEP_MS = 1_000;

/**
 * The clock of this process. The monotonic clock of Linux stands still while the machine is suspended, and leases do
 * not: a look compares it with the wall clock, and asks where that has jumped whether the machine was suspended or the
 * clock was set.
 */
export class SystemClock implements Clock {
  readonly #sources: TimeSources;
  readonly #compareEveryMs: number;
  #suspendedMs = 0;
  /** When the clocks were last compared, on the monotonic one. */
  #comparedAt: number;
  /** By how much the wall clock was ahead of the monotonic one when that was last asked about. */
  #wallAheadMs: number;
  /** The uptime when it was last asked for, and by how much it was ahead. */
  #uptimeSeconds: number;
  #uptimeAheadMs: number;

  /** @param compareEveryMs how far apart two looks are, on the monotonic clock, that compare it with the wall clock */
  constructor(sources: TimeSources = OF_THIS_MACHINE, compareEveryMs = COMPARE_EVERY_MS) {
    this.#sources = sources;
    this.#compareEveryMs = compareEveryMs;
    const monotonicMs = (this.#comparedAt = sources.monotonicMs());
    this.#wallAheadMs = sources.wallMs() - monotonicMs;
    ({ seconds: this.#uptimeSeconds, aheadMs: this.#uptimeAheadMs } = this.#uptime());
  }

  now(): number {
    const monotonicMs = this.#sources.monotonicMs();
    if (monotonicMs - this.#comparedAt >= this.#compareEveryMs) this.#compare(monotonicMs);
    return monotonicMs + this.#suspendedMs;
  }

  #compare(monotonicMs: number): void {
    this.#comparedAt = monotonicMs;
    const wallAheadMs = this.#sources.wallMs() - monotonicMs;
    const jumpMs = wallAheadMs - this.#wallAheadMs;
    if (jumpMs > JUMP_MS || jumpMs < -JUMP_MS) {
      this.#wallAheadMs = wallAheadMs;
      this.#countSuspend(jumpMs);
    }
  }

  wallNow(): number {
    return this.#sources.wallMs();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    // One timer serves many callers: it must keep none of their contexts, nor run the others' callbacks in it.
    return inRootContext(() => new SystemTimer(this, this.#sources, callback, delayMs, options?.background ?? false));
  }

  /**
   * The wall clock has jumped: the machine was suspended, or the clock was set, or this process stood still between two
   * looks.
   */
  #countSuspend(jumpMs: number): void {
    const { seconds: uptimeSeconds, aheadMs } = this.#uptime();
    const sleptMs = aheadMs - this.#uptimeAheadMs;
    const isCoarse = Number.isInteger(uptimeSeconds) && Number.isInteger(this.#uptimeSeconds);
    const stepMs = isCoarse ? UPTIME_STEP_MS.coarse : UPTIME_STEP_MS.fine;
    if (!(sleptMs > stepMs)) return;
    // The jump is exact to a millisecond, unless the clock was set as well. Otherwise no lease shall be trusted for too
    // long.
    this.#suspendedMs += Math.abs(jumpMs - sleptMs) <= stepMs ? jumpMs : sleptMs + stepMs;
    this.#uptimeSeconds = uptimeSeconds;
    this.#uptimeAheadMs = aheadMs;
  }

  /**
   * The uptime, and by how much it is ahead of the monotonic clock. Asked again where the two were not read together.
   */
  #uptime(): { seconds: number; aheadMs: number } {
    for (let times = 1; ; times++) {
      const monotonicMs = this.#sources.monotonicMs();
      const seconds = this.#sources.uptimeSeconds();
      const tookMs = this.#sources.monotonicMs() - monotonicMs;
      if (tookMs < UPTIME_ASKED_MS || times === MOST_UPTIMES)
        return { seconds, aheadMs: seconds * 1_000 - monotonicMs };
    }
  }
}

/** The clock that all parts of a process share, so that they agree on what a suspend has cost. */
export const SYSTEM_CLOCK: Clock = new SystemClock();

/** Wakes up now and then, to look how late it is. */
class SystemTimer implements Timer {
  readonly #endsAt: number;
  #timer: ReturnType<TimeSources['setTimeout']>;

  constructor(
    private readonly clock: Clock,
    private readonly sources: TimeSources,
    private readonly callback: () => void,
    delayMs: number,
    private readonly isBackground: boolean,
  ) {
    this.#endsAt = clock.now() + delayMs;
    this.#timer = this.#sleep(delayMs);
  }

  cancel(): void {
    this.sources.clearTimeout(this.#timer);
  }

  #sleep(leftMs: number): ReturnType<TimeSources['setTimeout']> {
    const isLast = leftMs <= LONGEST_SLEEP_MS;
    // Rounded up: a timer that fires a fraction early would find its deadline still ahead, and spin.
    const delayMs = isLast ? Math.max(Math.ceil(leftMs), 0) : LONGEST_SLEEP_MS;
    const timer = this.sources.setTimeout(isLast ? this.callback : this.#wakeUp, delayMs);
    if (this.isBackground) timer.unref();
    return timer;
  }

  readonly #wakeUp = (): void => {
    this.#timer = this.#sleep(this.#endsAt - this.clock.now());
  };
}
