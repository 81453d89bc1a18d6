import { Interval } from '@nestjs/schedule';
import { INTERVAL_RANGE, intervalTick, resolveIntervalOptions } from './job-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { readTimedJob, type SingletonJobOptions, type TimedJobArguments } from './singleton-options.js';

/** The options of `@SingletonInterval`. */
export type SingletonIntervalOptions = SingletonJobOptions;

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
  const { ms, options } = readTimedJob<SingletonIntervalOptions>(nameOrMs, rest, INTERVAL_RANGE);
  const schedule = options?.name === undefined ? Interval(ms) : Interval(options.name, ms);
  return singletonMethod(
    (where) => resolveIntervalOptions(options, ms, where),
    schedule,
    () => ({ now: (_instance, wallNow) => intervalTick(ms, wallNow) }),
  );
}
