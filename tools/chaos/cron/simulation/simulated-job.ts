import { CronTime } from 'cron';
import { CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';
import type { CronTimeLike, ZonedTime } from '../../../../lib/features/jobs/nest/next-tick.js';

/** A job that every member of the fleet schedules. */
export interface SimulatedJob {
  readonly name: string;
  /** A divisor of a minute, or so many minutes or hours. */
  readonly everySeconds: number;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
  /**
   * `true` if the server checks its ticks against the time, like those of `@SingletonCron`; otherwise any text is a
   * tick.
   */
  readonly isJudged: boolean;
}

/** So many ticks are computed for each that the package `cron` is asked for as well: it takes a hundred times as long. */
const TICKS_PER_PROOF = 300;
const MINUTE_MS = 60_000;

/** Two of each kind, which share one set of processes. */
export const SIMULATED_JOBS: readonly SimulatedJob[] = (['skip', 'retry'] as const).flatMap((onCrash) =>
  (['skip', 'wait'] as const).flatMap((overlap) =>
    [5, 10].map((everySeconds) => ({
      name: `onCrash ${onCrash}, overlap ${overlap}, every ${everySeconds} s`,
      everySeconds,
      overlap,
      onCrash,
      isJudged: everySeconds === 5,
    })),
  ),
);

/**
 * The same kinds, all judged, so rare that what a process missed is still the last tick when its claim is forgotten: a claim is kept
 * for an hour and twice the clock skew.
 */
export const RARE_JOBS: readonly SimulatedJob[] = SIMULATED_JOBS.filter(({ isJudged }) => isJudged).map((job) => ({
  ...job,
  name: `onCrash ${job.onCrash}, overlap ${job.overlap}, every 2 h`,
  everySeconds: 7_200,
}));

/** Which tick a job fires for: what the decorators compute, from the wall clock of a member. */
export class SimulatedSchedule {
  readonly everyMs: number;
  readonly #fast: CronTicks;
  readonly #real: CronTicks;
  #asked = 0;

  constructor({ everySeconds }: SimulatedJob) {
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
