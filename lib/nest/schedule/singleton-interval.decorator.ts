import { Interval } from '@nestjs/schedule';
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

const RANGE = ['intervalMs', 100, 2 ** 31 - 1] as const;
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
  const { ms, options } = readTimedJob<SingletonIntervalOptions>(nameOrMs, rest, RANGE);
  const keepMs = Math.floor(ms - Math.min(TIMER_SLACK.ms, ms * TIMER_SLACK.share));
  const schedule = options?.name === undefined ? Interval(ms) : Interval(options.name, ms);
  return singletonMethod(
    (where) => resolveJobOptions(options, where, JOB_OPTIONS),
    schedule,
    () => () => ({ tick: 'interval', keepMs }),
  );
}
