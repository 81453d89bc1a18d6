import { CronTime } from 'cron';
import { CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';
import type { CronTimeLike, ZonedTime } from '../../../../lib/features/jobs/nest/next-tick.js';

/** So many ticks are computed for each that the package `cron` is asked for as well: it takes a hundred times as long. */
const TICKS_PER_PROOF = 300;
const MINUTE_MS = 60_000;

/** Which tick a job fires for: what the decorators compute, from the wall clock of a process. */
export class SimulatedSchedule {
  readonly everyMs: number;
  readonly #fast: CronTicks;
  readonly #real: CronTicks;
  #asked = 0;

  /** @param everySeconds a divisor of a minute, or so many minutes or hours */
  constructor(everySeconds: number) {
    this.everyMs = everySeconds * 1_000;
    this.#fast = new CronTicks(everySoManyMs(this.everyMs));
    this.#real = new CronTicks(new CronTime(expressionOf(everySeconds), 'UTC'));
  }

  /** @throws where the package `cron` has another answer */
  tickAt(wallNow: number): number {
    const tick = this.#fast.firedAt(wallNow);
    if (this.#asked++ % TICKS_PER_PROOF > 0) return tick;
    const real = this.#real.firedAt(wallNow);
    if (real !== tick) throw new Error(`at ${wallNow} the tick is ${real} by the package cron, and not ${tick}`);
    return tick;
  }
}

function expressionOf(everySeconds: number): string {
  if (everySeconds < 60) return `*/${everySeconds} * * * * *`;
  return everySeconds < 3_600 ? `0 */${everySeconds / 60} * * * *` : `0 0 */${everySeconds / 3_600} * * *`;
}

function everySoManyMs(everyMs: number): CronTimeLike {
  return {
    realDate: false,
    source: '',
    getNextDateFrom(start) {
      return inUtc((Math.floor(start.getTime() / everyMs) + 1) * everyMs);
    },
  };
}

/** Luxon takes longer than the rest of a simulated tick. */
function inUtc(ms: number): ZonedTime {
  return {
    minute: Math.floor(ms / MINUTE_MS) % 60,
    second: Math.floor(ms / 1_000) % 60,
    offset: 0,
    toMillis: () => ms,
    plus: ({ hours = 0, milliseconds = 0 }) => inUtc(ms + 60 * hours * MINUTE_MS + milliseconds),
  };
}
