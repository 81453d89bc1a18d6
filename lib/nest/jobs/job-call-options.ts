import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { checked, integer, type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import { OPERATOR } from '../../core/operators.js';
import { describeTime, timeOf } from '../schedule/job-schedules.js';

/** What `SingletonJobs.runNow` takes. */
export interface RunNowOptions {
  /**
   * Who asks for it. It stands in the history of the job.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * Why. The log says it, and the event `jobCommand`.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
}

/** What `SingletonJobs.resume` takes. */
export interface ResumeOptions {
  /**
   * Who asks for it. The log says it, and the event `jobCommand`.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * Why. The log says it, and the event `jobCommand`.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
}

/** What `SingletonJobs.history` takes. */
export interface HistoryOptions {
  /**
   * How many runs to return at most, the newest first.
   *
   * @allowed 1 to 1,000
   * @default 100
   */
  limit?: number;
}

/** What `SingletonJobs.pause` takes. */
export interface PauseOptions {
  /**
   * Who asks for it. `list` and `get` show it, and the event `tickSkipped`.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * Why. `list` and `get` show it, the log, and the events `jobCommand` and `tickSkipped`.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
  /**
   * When the pause ends by itself. Without it, the pause lasts until `resume`, however long that is.
   *
   * @allowed a Date that is not over, or its milliseconds since 1970
   * @default none
   */
  until?: Date | number;
}

export const HISTORY_OPTIONS = new OptionTable({
  limit: integer(1, 1_000, 'runs').default(100),
} satisfies OptionsOf<HistoryOptions>);
export const PAUSE_OPTIONS = new OptionTable({
  ...OPERATOR,
  until: checked<Date | number>(checkUntil),
} satisfies OptionsOf<PauseOptions>);
export const RUN_NOW_OPTIONS = new OptionTable(OPERATOR satisfies OptionsOf<RunNowOptions>);
export const RESUME_OPTIONS = new OptionTable(OPERATOR satisfies OptionsOf<ResumeOptions>);

/** The last millisecond that a Date can say. */
const LATEST_DATE = 8.64e15;

function checkUntil(option: string, until: unknown): void {
  const ms = typeof until === 'number' ? until : timeOf(until);
  if (ms === undefined || !Number.isInteger(ms) || ms > LATEST_DATE) throw refuseUntil(until, option);
}

/**
 * Checks the options of `pause`.
 *
 * @param now milliseconds since 1970, by the clock of the lock service
 * @throws InvalidLockOptionsError
 */
export function checkPauseOptions(options: PauseOptions, now: number): void {
  PAUSE_OPTIONS.check('pause', options);
  const { until } = options;
  if (until !== undefined && Number(until) <= now) throw refuseUntil(until, 'until');
}

function refuseUntil(until: unknown, option: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `${option} must be a Date that is not over, or its milliseconds, not ${describeTime(until)}.`,
    option,
  );
}
