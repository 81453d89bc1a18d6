import { Interval } from '@nestjs/schedule';
import { checkInteger } from '../../core/api/validation.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import {
  JOB_OPTIONS,
  readTimedJob,
  resolveJobOptions,
  type SingletonJobOptions,
  type TimedJobArguments,
} from './singleton-options.js';

/** The options of `@SingletonInterval`. */
export type SingletonIntervalOptions = SingletonJobOptions;

const LONGEST_INTERVAL_MS = 2 ** 31 - 1;
/** How early a timer may fire after the last one, in milliseconds, and as a share of the interval if that is less. */
const TIMER_SLACK = { ms: 1_000, share: 0.1 };

/**
 * `@Interval`, but the fleet as a whole runs the method once per interval. The timers of the instances are out of step,
 * so a run has no nominal time. The first instance whose timer fires runs the method, and then no instance runs it for
 * most of an interval, by the clock of Redis. Needs `ScheduleModule.forRoot()`.
 *
 * ```ts
 * @SingletonInterval(30_000)
 * @SingletonInterval(30_000, { name: 'poll', overlap: 'wait' })
 * @SingletonInterval('poll', 30_000, { overlap: 'wait' })
 * ```
 *
 * The method may be sync, as with `@Interval`. A call of it then returns a promise all the same.
 *
 * @param nameOrMs milliseconds between runs, 100 to 2147483647; or the name of the job, before the milliseconds
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonInterval<N extends string | number>(
  nameOrMs: N,
  ...rest: TimedJobArguments<N, SingletonIntervalOptions>
): JobMethodDecorator {
  const { ms, options: given } = readTimedJob(nameOrMs, rest);
  checkInteger('intervalMs', ms, 100, LONGEST_INTERVAL_MS);
  const intervalMs = ms as number;
  const options = given as SingletonIntervalOptions;
  const keepMs = Math.floor(intervalMs - Math.min(TIMER_SLACK.ms, intervalMs * TIMER_SLACK.share));
  const schedule = options?.name === undefined ? Interval(intervalMs) : Interval(options.name, intervalMs);
  return singletonMethod(
    (where) => resolveJobOptions(options, where, JOB_OPTIONS),
    schedule,
    () => () => ({ tick: 'interval', keepMs }),
  );
}
