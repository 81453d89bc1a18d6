import type { CronOptions } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../../../kernel/api/errors.js';
import {
  checkIsObject,
  describeValue,
  OPERATOR,
  Option,
  type OptionsOf,
  OptionTable,
  without,
} from '../../../../kernel/api/validation.js';
import {
  JOB_OPTIONS,
  type SingletonJobOptions,
  type SingletonTickOptions,
  TICK_OPTIONS,
} from '../singleton-options.js';
import { INTERVAL_RANGE } from '../job-ticks.js';
import { describeTime, timeOf } from '../job-schedules.js';

/** A job with a cron expression, for `SingletonJobs.add`. It works like `@SingletonCron`. */
export interface AddedCronJob extends Omit<SingletonTickOptions, 'name' | 'service'> {
  /**
   * The name of the job, the same on every instance and unique among jobs. The `SchedulerRegistry` lists the job under
   * it.
   *
   * @allowed 1 to 200 characters
   */
  name: string;
  /**
   * The schedule of the job.
   *
   * @allowed as in `@Cron`: a cron expression, a `Date`, or a luxon `DateTime`
   */
  cron: CronOptions extends { cronTime: infer T } ? T : string | Date;
  /**
   * The time zone of the expression.
   *
   * @allowed the name of a time zone, such as `Europe/Vienna`
   * @default the process's time zone
   */
  timeZone?: string;
  /**
   * The offset from UTC in minutes, instead of a time zone.
   *
   * @allowed -1,439 to 1,439
   * @default none
   */
  utcOffset?: number;
  intervalMs?: never;
  at?: never;
}

/** A job that runs once per interval, for `SingletonJobs.add`. It works like `@SingletonInterval`. */
interface AddedIntervalJob extends Omit<SingletonJobOptions, 'name' | 'service'> {
  /** See {@link AddedCronJob.name}. @allowed 1 to 200 characters */
  name: string;
  /** The time between two runs. @allowed 100 ms to 2147483647 ms */
  intervalMs: number;
  cron?: never;
  at?: never;
}

/**
 * A job that runs once, for `SingletonJobs.add`. It is removed after its run and, on the other instances, once its date
 * has passed.
 */
interface AddedDateJob extends Omit<SingletonTickOptions, 'name' | 'service'> {
  /** See {@link AddedCronJob.name}. @allowed 1 to 200 characters */
  name: string;
  /** The time of the job's only run. @allowed a `Date` in the future, or a luxon `DateTime` */
  at: Date | { toMillis(): number };
  cron?: never;
  intervalMs?: never;
}

/** A job that is added while the application runs: with `cron`, `intervalMs` or `at`. */
export type AddedJob = AddedCronJob | AddedIntervalJob | AddedDateJob;

const KINDS = ['cron', 'intervalMs', 'at'] as const;

const name = JOB_OPTIONS.options.name.required();

export const ADDED_CRON_OPTIONS = new OptionTable({
  ...without(TICK_OPTIONS.options, 'name', 'service'),
  name,
  cron: Option.checked<AddedCronJob['cron']>(),
  timeZone: Option.text(/./su, 'the name of a time zone'),
  utcOffset: Option.integer(-1_439, 1_439, 'minutes'),
  intervalMs: Option.checked<never>(),
  at: Option.checked<never>(),
} satisfies OptionsOf<AddedCronJob>);

export const ADDED_INTERVAL_OPTIONS = new OptionTable({
  ...without(JOB_OPTIONS.options, 'name', 'service'),
  name,
  intervalMs: Option.milliseconds(INTERVAL_RANGE[1], INTERVAL_RANGE[2]).required(),
  cron: Option.checked<never>(),
  at: Option.checked<never>(),
} satisfies OptionsOf<AddedIntervalJob>);

export const ADDED_DATE_OPTIONS = new OptionTable({
  ...without(TICK_OPTIONS.options, 'name', 'service'),
  name,
  at: Option.checked<AddedDateJob['at']>(),
  cron: Option.checked<never>(),
  intervalMs: Option.checked<never>(),
} satisfies OptionsOf<AddedDateJob>);

const TABLES = { cron: ADDED_CRON_OPTIONS, intervalMs: ADDED_INTERVAL_OPTIONS, at: ADDED_DATE_OPTIONS };
const WHERE = 'SingletonJobs.add';

/**
 * Checks the options of a job that is added.
 *
 * @returns how its time is stated
 */
export function checkAddedJob(job: AddedJob): (typeof KINDS)[number] {
  checkIsObject(WHERE, job);
  const stated = KINDS.filter((kind) => job[kind] !== undefined);
  const [kind] = stated;
  if (kind === undefined || stated.length > 1) {
    const what = kind === undefined ? 'none of them' : stated.join(' and ');
    throw new InvalidLockOptionsError(
      `${WHERE} needs one of cron, intervalMs and at, and has ${what}: it says when the job ${describeValue(job.name)} runs.`,
      stated[1] ?? 'cron',
    );
  }
  TABLES[kind].check(WHERE, job);
  return kind;
}

/** The fleet options, without the schedule. */
export function fleetOptionsOf(job: AddedJob): SingletonTickOptions {
  return without(job as AddedCronJob, 'cron', 'timeZone', 'utcOffset', 'intervalMs', 'at');
}

/** Options of `SingletonJobs.runNow`. */
export interface RunNowOptions {
  /**
   * The person or program that requests the run, for the job's history.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * The reason, for the log and the event.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
}

/** Options of `SingletonJobs.resume`. */
export interface ResumeOptions {
  /**
   * The person or program that resumes the job, for the log and the event.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * The reason, for the log and the event.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
}

/** Options of `SingletonJobs.history`. */
export interface HistoryOptions {
  /**
   * The maximum number of runs to return, the newest first.
   *
   * @allowed 1 to 1,000
   * @default 100
   */
  limit?: number;
}

/** Options of `SingletonJobs.pause`. */
export interface PauseOptions {
  /**
   * The person or program that pauses the job. Shown by `list` and `get`, and in the event `tickSkipped`.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * The reason. Shown by `list`, `get` and the log, and in the events `jobCommand` and `tickSkipped`.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
  /**
   * The end of the pause. Without it, the pause lasts until `resume`.
   *
   * @allowed a `Date` in the future, or epoch milliseconds
   * @default none
   */
  until?: Date | number;
}

export const HISTORY_OPTIONS = new OptionTable({
  limit: Option.integer(1, 1_000, 'runs').default(100),
} satisfies OptionsOf<HistoryOptions>);
export const PAUSE_OPTIONS = new OptionTable({
  ...OPERATOR,
  until: Option.checked<Date | number>(checkUntil),
} satisfies OptionsOf<PauseOptions>);
export const RUN_NOW_OPTIONS = new OptionTable(OPERATOR satisfies OptionsOf<RunNowOptions>);
export const RESUME_OPTIONS = new OptionTable(OPERATOR satisfies OptionsOf<ResumeOptions>);

/** The last millisecond that a Date can represent. */
const MAX_DATE = 8.64e15;

function checkUntil(option: string, until: unknown): void {
  const ms = typeof until === 'number' ? until : timeOf(until);
  if (ms === undefined || !Number.isInteger(ms) || ms > MAX_DATE) throw refuseUntil(until, option);
}

/**
 * Checks the options of `pause`.
 *
 * @param now milliseconds since 1970, by the clock of the lock service
 */
export function checkPauseOptions(options: PauseOptions, now: number): void {
  PAUSE_OPTIONS.check('pause', options);
  const { until } = options;
  if (until !== undefined && Number(until) <= now) throw refuseUntil(until, 'until');
}

function refuseUntil(until: unknown, option: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `${option} must be a Date in the future, or its milliseconds, not ${describeTime(until)}.`,
    option,
  );
}
