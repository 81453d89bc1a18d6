import { randomFillSync } from 'node:crypto';
import os from 'node:os';
import { inRootContext } from './async-contexts.js';

/** A timer that a {@link Clock} has set. */
export interface Timer {
  cancel(): void;
}

/** The source of time for core. Injected, so that tests of time rules are deterministic. */
export interface Clock {
  /**
   * Monotonic milliseconds, including the time the machine was suspended. Only differences are meaningful. Setting the
   * wall clock has no effect on it.
   */
  now(): number;
  /** Milliseconds since the Unix epoch, by this machine's wall clock. Never used to decide who holds a lock. */
  wallNow(): number;
  /**
   * Calls the callback once, `delayMs` from now, outside the async context of any caller. `background` timers do not
   * keep the process alive.
   */
  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer;
}

export interface TimeSources {
  /** Monotonic milliseconds. Stops while a Linux machine is suspended. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch. Jumps when the clock is set. */
  wallMs(): number;
  /**
   * Seconds since the machine was started, including suspended time; NaN if not known. Takes a hundred times as long to
   * read as the others.
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
 * The minimum interval between comparisons of the clocks. A process cannot know whether so short a piece of work ran
 * before or after a suspend.
 */
const COMPARE_EVERY_MS = 0.1;
/** The uptime is read if the wall clock moves against the monotonic clock by more than this. */
const JUMP_MS = 20;
/** The precision of the uptime: hundredths of a second, or whole seconds if `/proc/uptime` cannot be read. */
const UPTIME_STEP_MS = { fine: 10, coarse: 1_000 };
/** If reading the uptime takes this long, the event loop was blocked. Then it is read again, up to this many times. */
const UPTIME_ASKED_MS = 2;
const MAX_UPTIMES = 4;
/** Timers stop during a suspend. A longer timer reads the clock at least this often, so it is at most this late. */
const MAX_SLEEP_MS = 1_000;

/**
 * The clock of this process. The monotonic clock of Linux stops while the machine is suspended, but leases run on. So
 * this clock compares it with the wall clock. If that has jumped, the uptime shows whether the machine was suspended or
 * the clock was set.
 */
export class SystemClock implements Clock {
  readonly #sources: TimeSources;
  readonly #compareEveryMs: number;
  #suspendedMs = 0;
  /** On the monotonic clock. */
  #comparedAt = 0;
  /** By how much the wall clock was ahead of the monotonic clock, at the start or after the last jump. */
  #wallAheadMs = 0;
  /** The uptime, and by how much it was ahead of the monotonic clock, at the start or after the last suspend. */
  #uptimeSeconds = 0;
  #uptimeAheadMs = 0;

  constructor(sources: TimeSources = OF_THIS_MACHINE, compareEveryMs = COMPARE_EVERY_MS) {
    this.#sources = sources;
    this.#compareEveryMs = compareEveryMs;
    this.#begin(sources.monotonicMs());
  }

  now(): number {
    const monotonicMs = this.#sources.monotonicMs();
    const sinceMs = monotonicMs - this.#comparedAt;
    if (sinceMs >= this.#compareEveryMs || sinceMs < 0) this.#compare(monotonicMs);
    return monotonicMs + this.#suspendedMs;
  }

  #begin(monotonicMs: number): void {
    this.#comparedAt = monotonicMs;
    this.#wallAheadMs = this.#sources.wallMs() - monotonicMs;
    ({ seconds: this.#uptimeSeconds, aheadMs: this.#uptimeAheadMs } = this.#uptime());
  }

  #compare(monotonicMs: number): void {
    // Only another clock is behind: the fake timers of a test begin at 0. That is no suspend.
    if (monotonicMs < this.#comparedAt) return this.#begin(monotonicMs);
    this.#comparedAt = monotonicMs;
    if (Math.abs(this.#jumpMs(monotonicMs)) <= JUMP_MS) return;
    // On a busy machine, the process may have had to wait between the two readings, so both are read again.
    const jumpMs = this.#jumpMs(this.#sources.monotonicMs());
    if (Math.abs(jumpMs) <= JUMP_MS) return;
    this.#wallAheadMs += jumpMs;
    this.#countSuspend(jumpMs);
  }

  /** Returns by how much the wall clock has moved against the monotonic clock since the last jump. */
  #jumpMs(monotonicMs: number): number {
    return this.#sources.wallMs() - monotonicMs - this.#wallAheadMs;
  }

  wallNow(): number {
    return this.#sources.wallMs();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    // One timer serves many callers, so it must not keep or use the context of any of them.
    return inRootContext(() => new SystemTimer(this, this.#sources, callback, delayMs, options?.background ?? false));
  }

  /**
   * The wall clock has jumped: the machine was suspended, the clock was set, or the event loop was blocked between two
   * readings.
   */
  #countSuspend(jumpMs: number): void {
    const { seconds: uptimeSeconds, aheadMs } = this.#uptime();
    const sleptMs = aheadMs - this.#uptimeAheadMs;
    // One fine reading in a hundred is a whole number too. Then the precision is unknown, so the coarse one is used.
    const isCoarse = Number.isInteger(uptimeSeconds) && Number.isInteger(this.#uptimeSeconds);
    const stepMs = isCoarse ? UPTIME_STEP_MS.coarse : UPTIME_STEP_MS.fine;
    // The jump is exact to a millisecond, unless the clock was set as well. Then the larger value is used. A jump that
    // the precision cannot distinguish from a suspend counts as one. So no lease is trusted for too long.
    const isOfJump = Math.abs(jumpMs - sleptMs) <= stepMs;
    if (isOfJump ? jumpMs < 0 : !(sleptMs > stepMs)) return;
    this.#suspendedMs += isOfJump ? jumpMs : sleptMs + stepMs;
    this.#uptimeSeconds = uptimeSeconds;
    this.#uptimeAheadMs = aheadMs;
  }

  /**
   * Reads the uptime, and by how much it is ahead of the monotonic clock. Reads both again if too much time passed
   * between them.
   */
  #uptime(): { seconds: number; aheadMs: number } {
    for (let times = 1; ; times++) {
      const monotonicMs = this.#sources.monotonicMs();
      const seconds = this.#sources.uptimeSeconds();
      const tookMs = this.#sources.monotonicMs() - monotonicMs;
      if (tookMs < UPTIME_ASKED_MS || times === MAX_UPTIMES) return { seconds, aheadMs: seconds * 1_000 - monotonicMs };
    }
  }
}

/** The clock that all parts of a process share, so that they agree on the suspended time. */
export const SYSTEM_CLOCK: Clock = new SystemClock();

/** A timer that reads the clock from time to time, because a suspend stops timers. */
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
    const isLast = leftMs <= MAX_SLEEP_MS;
    // Rounded up: a timer that fires a fraction early would find its deadline still ahead, and spin.
    const delayMs = isLast ? Math.max(Math.ceil(leftMs), 0) : MAX_SLEEP_MS;
    const timer = this.sources.setTimeout(isLast ? this.callback : this.#wakeUp, delayMs);
    if (this.isBackground) timer.unref();
    return timer;
  }

  readonly #wakeUp = (): void => {
    this.#timer = this.#sleep(this.#endsAt - this.clock.now());
  };
}

/** The source of randomness for core. Injected, so that tests are repeatable. */
export interface Random {
  /** An unguessable name: 128 bits from a cryptographic generator, or as many bytes as given, base64url. */
  id(bytes?: number): string;
  /** A number from 0 to less than 1, for jitter. */
  fraction(): number;
}

const ID_BYTES = 16;
const IDS_AT_ONCE = 256;

/** The sources of ids. Tests pass their own. */
interface RandomSources {
  readonly fill: (pool: Uint8Array) => unknown;
  /** Both in milliseconds: `now` from any start, with fractions; `wallNow` since the Unix epoch. */
  readonly now: () => number;
  readonly wallNow: () => number;
}

const SYSTEM: RandomSources = { fill: randomFillSync, now: () => performance.now(), wallNow: () => Date.now() };

/** In milliseconds. */
const WALL_CLOCK_KEEPS_MS = 0.1;

export class SystemRandom implements Random {
  readonly #pool = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
  readonly #words = new Uint32Array(this.#pool.buffer, this.#pool.byteOffset, this.#pool.length / 4);
  readonly #times = new Float64Array(2);
  readonly #timeWords = new Uint32Array(this.#times.buffer);
  readonly #sources: RandomSources;
  #used = this.#pool.length;
  #wallReadAt = -Infinity;

  constructor(sources = SYSTEM) {
    this.#sources = sources;
  }

  id(bytes = ID_BYTES): string {
    const { fill, now, wallNow } = this.#sources;
    // Asking the generator for each id costs a fifth of an acquisition.
    if (this.#used === this.#pool.length) {
      fill(this.#pool);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += ID_BYTES;
    // Copies of a running machine (snapshots, live clones) have the same pool and the same generator. The time at which
    // they continue differs, so both times are mixed into the first 8 bytes, which the shortest ids have. Random bits
    // stay random with it.
    const time = now();
    if (!(time - this.#wallReadAt < WALL_CLOCK_KEEPS_MS)) {
      this.#wallReadAt = time;
      this.#times[1] = wallNow();
    }
    this.#times[0] = time;
    const times = this.#timeWords;
    this.#words[from / 4]! ^= times[0]! ^ times[2]!;
    this.#words[from / 4 + 1]! ^= times[1]! ^ times[3]!;
    return this.#pool.toString('base64url', from, from + bytes);
  }

  fraction(): number {
    return Math.random();
  }
}

/** Twice as long after each failure in a row, within the range in milliseconds. @param failures 1 after the first one */
export function backoff(range: { readonly first: number; readonly longest: number }, failures: number): number {
  return Math.min(range.longest, range.first * 2 ** Math.min(failures - 1, 10));
}

/** Spreads out many callers that wait for the same thing: a factor from 1 up to 1.25. */
export function jitter(random: Pick<Random, 'fraction'>): number {
  return 1 + random.fraction() / 4;
}
