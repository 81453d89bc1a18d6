import type { Watched, TickSchedule } from '../../../../lib/features/jobs/core/watched-job.js';

/** A job that every process of the fleet schedules, and that the store remembers. */
export interface RememberedJob extends Pick<
  Watched['job'],
  'historySize' | 'graceMs' | 'onMissed' | 'catchUpWindowMs'
> {
  readonly name: string;
  /** A divisor of a minute, or so many minutes or hours. */
  readonly everySeconds: number;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function job(everySeconds: number, changes: Partial<RememberedJob> = {}): RememberedJob {
  const defaults = {
    overlap: 'skip',
    onCrash: 'skip',
    historySize: 100,
    graceMs: 2 * MINUTE_MS,
  } as const;
  const missed = { onMissed: 'runOnce', catchUpWindowMs: 24 * HOUR_MS } as const;
  const merged = { everySeconds, ...defaults, ...missed, ...changes };
  const { overlap, onCrash, onMissed, historySize } = merged;
  const name = `every ${everySeconds} s, overlap ${overlap}, onCrash ${onCrash}, onMissed ${onMissed}, keeps ${historySize}`;
  return { name, ...merged };
}

/** Each setting, in rare jobs and in frequent ones. */
export const REMEMBERED_JOBS: readonly RememberedJob[] = [
  job(10, { onMissed: 'skip' }),
  job(15, { overlap: 'wait', onCrash: 'retry', historySize: 30 }),
  job(60, { onCrash: 'retry', historySize: 5, catchUpWindowMs: 10 * MINUTE_MS }),
  job(60, { overlap: 'wait', historySize: 1_000 }),
  job(7_200, { overlap: 'wait' }),
];

/** Of these, nights off leave tens of thousands of missed ticks. */
const BUSY_JOBS: readonly RememberedJob[] = [
  job(1, { historySize: 1_000 }),
  job(2, { onCrash: 'retry', historySize: 20, catchUpWindowMs: 5 * MINUTE_MS }),
];

/** A fleet that is off each night, for as many ticks as are wanted. */
export const NIGHTS = { jobs: BUSY_JOBS, upMs: Infinity, hasNights: true, calmMs: 3_000 } as const;

/** Other processes take over what a dead one has not finished. */
export const RETRIED_JOBS = ['skip', 'wait'].map((overlap) =>
  job(5, { overlap: overlap as 'skip' | 'wait', onCrash: 'retry' }),
);

/** Their runs often wait for an earlier one, so that a shutdown finds ticks that have not begun. */
export const RETURNED_JOBS = (['skip', 'retry'] as const).map((onCrash) => job(3, { overlap: 'wait', onCrash }));

/** Ticks at all multiples of a time. A new deployment may change it. */
export class EverySoOften implements TickSchedule {
  constructor(readonly everyMs: number) {}

  get text(): string {
    return `every ${this.everyMs}`;
  }

  around(tick: number): { readonly before: number; readonly after: number } {
    return { before: tick - this.everyMs, after: tick + this.everyMs };
  }

  after(time: number): number {
    return (Math.floor(time / this.everyMs) + 1) * this.everyMs;
  }

  async between(after: number, until: number, most: number): ReturnType<TickSchedule['between']> {
    const all = this.ticks(after, until);
    return all.length === 0 ? { count: 0, ticks: [] } : { count: all.length, first: all[0]!, ticks: all.slice(-most) };
  }

  /** The ticks after a time and not after another. */
  ticks(after: number, until: number): number[] {
    const first = this.after(after);
    const count = Math.max(0, Math.floor((until - first) / this.everyMs) + 1);
    return Array.from({ length: count }, (_, index) => first + index * this.everyMs);
  }
}
