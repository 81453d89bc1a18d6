import { Interval, Timeout } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { checkInteger, describeValue, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { INTERVAL_RANGE, intervalTick, resolveIntervalOptions } from './job-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { checkSpread, JOB_OPTIONS, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

/**
 * The arguments of a job with a time in milliseconds, as in `@nestjs/schedule`: the time, or a name and the time,
 * followed by the options.
 */
type TimedJobArguments<N extends string | number, O extends SingletonJobOptions> = N extends string
  ? [milliseconds: number, options?: Omit<O, 'name'>]
  : [options?: O];

/**
 * Reads the arguments of a job with a time in milliseconds. Options that are no object are refused later, when the
 * method is known for the message.
 *
 * @param range what the time is called in a message, the shortest and the longest one
 * @throws InvalidLockOptionsError when the time is out of range, or the name is stated twice
 */
function readTimedJob<O extends SingletonJobOptions>(
  nameOrMs: string | number,
  rest: readonly unknown[],
  range: readonly [option: string, min: number, max: number],
): { readonly ms: number; readonly options: O } {
  const [given, options = {}] = typeof nameOrMs === 'string' ? rest : [nameOrMs, ...rest];
  const [option, min, max] = range;
  checkInteger(option, given, min, max);
  const job = { ms: given as number, options: options as O };
  if (typeof nameOrMs !== 'string' || options === null || typeof options !== 'object') return job;
  const { name } = job.options;
  if (name === undefined) return { ...job, options: { ...job.options, name: nameOrMs } };
  throw new InvalidLockOptionsError(
    `The name of a job is given twice: ${describeValue(nameOrMs)} and ${describeValue(name)}. ` +
      'Leave it out of the options.',
    'name',
  );
}

/** The options of `@SingletonInterval`. */
export type SingletonIntervalOptions = SingletonJobOptions;

/**
 * Like `@Interval`, but the method runs once per interval across all instances. The first instance whose timer fires
 * runs the method. After that, no instance runs it again until 90 % of the interval has passed (if it is longer than
 * 10 s, all but its last second), by the clock of Redis. A new instance counts the interval from the last run on any instance, not from
 * its own start. Needs `ScheduleModule.forRoot()`.
 *
 * - `@SingletonInterval(30_000)`
 * - `@SingletonInterval(30_000, { name: 'poll', overlap: 'wait' })`
 * - `@SingletonInterval('poll', 30_000, { overlap: 'wait' })`
 *
 * The method may be sync, as with `@Interval`, but calling it still returns a promise.
 *
 * @param nameOrMs the milliseconds between runs, 100 to 2147483647; or the name of the job, followed by the
 *   milliseconds
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonInterval<N extends string | number>(
  nameOrMs: N,
  ...rest: TimedJobArguments<N, SingletonIntervalOptions>
): JobMethodDecorator {
  const { ms, options } = readTimedJob<SingletonIntervalOptions>(nameOrMs, rest, INTERVAL_RANGE);
  const schedule = options?.name === undefined ? Interval(ms) : Interval(options.name, ms);
  return singletonMethod('SingletonInterval', (where) => ({
    options: resolveIntervalOptions(options, ms, where),
    schedule,
    ticks: { now: (_instance, wallNow) => intervalTick(ms, wallNow), intervalMs: ms },
  }));
}

/** The options of `@SingletonTimeout`. */
export interface SingletonTimeoutOptions extends SingletonJobOptions {
  /**
   * After a run, no other instance runs the job for this long. Choose a time longer than a deployment takes, and
   * shorter than the time between two deployments.
   *
   * @allowed 1 s to 24 h
   * @default 600000
   */
  dedupeWindowMs?: number;
}

const TIMEOUT_RANGE = ['timeoutMs', 0, 2 ** 31 - 1] as const;
const DAY_MS = 24 * 60 * 60 * 1000;

export const TIMEOUT_OPTIONS = new OptionTable({
  ...JOB_OPTIONS.options,
  dedupeWindowMs: Option.milliseconds(1_000, DAY_MS).default(10 * 60 * 1000),
} satisfies OptionsOf<SingletonTimeoutOptions>);

/**
 * Like `@Timeout`, but only one of the instances that start within `dedupeWindowMs` of each other runs the method.
 * Needs `ScheduleModule.forRoot()`.
 *
 * - `@SingletonTimeout(5_000)`
 * - `@SingletonTimeout('warm-cache', 5_000, { dedupeWindowMs: 60_000 })`
 *
 * The method may be sync, as with `@Timeout`, but calling it still returns a promise.
 *
 * @param nameOrMs the milliseconds after the start of the application, 0 to 2147483647; or the name of the job,
 *   followed by the milliseconds
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonTimeout<N extends string | number>(
  nameOrMs: N,
  ...rest: TimedJobArguments<N, SingletonTimeoutOptions>
): JobMethodDecorator {
  const { ms, options } = readTimedJob<SingletonTimeoutOptions>(nameOrMs, rest, TIMEOUT_RANGE);
  const claimTtlMs = options?.dedupeWindowMs ?? TIMEOUT_OPTIONS.defaults.dedupeWindowMs;
  const schedule = options?.name === undefined ? Timeout(ms) : Timeout(options.name, ms);
  return singletonMethod('SingletonTimeout', (where) => {
    const resolved = resolveJobOptions(options, where, TIMEOUT_OPTIONS);
    checkSpread(resolved, 'dedupeWindowMs', claimTtlMs);
    return { options: resolved, schedule, ticks: { now: () => ({ tick: 'timeout', claimTtlMs }) } };
  });
}
