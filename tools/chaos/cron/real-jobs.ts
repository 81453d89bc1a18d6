/** A job that every process of the fleet schedules. */
export interface RealJob {
  readonly name: string;
  readonly everyMs: number;
  /** A run takes half of this to all of it. */
  readonly longestRunMs: number;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
  /**
   * `true` if Redis checks its ticks against the time, like those of `@SingletonCron`; otherwise any text is a tick.
   */
  readonly isJudged: boolean;
}

/** The lease of a run: short enough to be renewed several times in the slow job, and to expire soon after a crash. */
export const LEASE_MS = 400;
/** The clocks of two processes are no further apart. */
export const MAX_CLOCK_SKEW_MS = 3_000;

export const REAL_JOBS: readonly RealJob[] = [
  { name: 'mail', everyMs: 20, longestRunMs: 3, overlap: 'skip', onCrash: 'skip', isJudged: false },
  { name: 'index', everyMs: 40, longestRunMs: 60, overlap: 'skip', onCrash: 'retry', isJudged: true },
  { name: 'count', everyMs: 60, longestRunMs: 3, overlap: 'wait', onCrash: 'skip', isJudged: true },
  { name: 'bill', everyMs: 60, longestRunMs: 3, overlap: 'wait', onCrash: 'retry', isJudged: false },
  { name: 'report', everyMs: 800, longestRunMs: 400, overlap: 'wait', onCrash: 'retry', isJudged: true },
];
