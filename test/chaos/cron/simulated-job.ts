import { CronTime } from 'cron';
import { type CronTimeLike, nominalTick } from '../../../lib/nest/schedule/nominal-tick.js';

/** A job that every member of the fleet schedules. */
export interface SimulatedJob {
  readonly name: string;
  /** A divisor of a minute. */
  readonly everySeconds: number;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
  /** Whether the server judges its ticks by the time, as those of `@SingletonCron`; or any text is a tick. */
  readonly isJudged: boolean;
}

/** So many ticks are computed for each that the package `cron` is asked for as well: it takes a hundred times as long. */
const TICKS_PER_PROOF = 100;

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

/** Which tick a job fires for: what the decorators compute, from the wall clock of a member. */
export class SimulatedSchedule {
  readonly everyMs: number;
  readonly #fast: CronTimeLike;
  readonly #real: CronTime;
  #asked = 0;

  constructor({ everySeconds }: SimulatedJob) {
    this.everyMs = everySeconds * 1_000;
    this.#fast = everySoManyMs(this.everyMs);
    this.#real = new CronTime(`*/${everySeconds} * * * * *`, 'UTC');
  }

  /** @throws where the package `cron` has another answer */
  tickAt(wallNow: number): number {
    const tick = nominalTick(this.#fast, wallNow);
    if (this.#asked++ % TICKS_PER_PROOF > 0) return tick;
    const real = nominalTick(this.#real as unknown as CronTimeLike, wallNow);
    if (real !== tick) throw new Error(`at ${wallNow} the tick is ${real} by the package cron, and not ${tick}`);
    return tick;
  }
}

function everySoManyMs(everyMs: number): CronTimeLike {
  return {
    realDate: false,
    source: '',
    getNextDateFrom(start) {
      const next = (Math.floor(start.getTime() / everyMs) + 1) * everyMs;
      return { toMillis: () => next };
    },
  };
}
