import { Interval } from '@nestjs/schedule';
import { checkInteger } from '../../core/api/validation.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { JOB_OPTIONS, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

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
 * @param intervalMs milliseconds between runs, 100 to 2147483647
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonInterval(intervalMs: number, options: SingletonIntervalOptions = {}): JobMethodDecorator {
  checkInteger('intervalMs', intervalMs, 100, LONGEST_INTERVAL_MS);
  const keepMs = Math.floor(intervalMs - Math.min(TIMER_SLACK.ms, intervalMs * TIMER_SLACK.share));
  const schedule = options?.name === undefined ? Interval(intervalMs) : Interval(options.name, intervalMs);
  return singletonMethod(
    (where) => resolveJobOptions(options, where, JOB_OPTIONS),
    schedule,
    () => () => ({ tick: 'interval', keepMs }),
  );
}
