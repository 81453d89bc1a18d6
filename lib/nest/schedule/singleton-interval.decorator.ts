import { Interval } from '@nestjs/schedule';
import { checkInteger } from '../../core/api/validation.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { JOB_OPTION_NAMES, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

/** What `@SingletonInterval` takes besides the interval. */
export type SingletonIntervalOptions = SingletonJobOptions;

const LONGEST_INTERVAL_MS = 2 ** 31 - 1;
/** How much a timer may be early against the one before, and by how much of the interval at most. */
const TIMER_SLACK = { ms: 1_000, share: 0.1 };

/**
 * `@Interval`, but the fleet as a whole runs it once an interval. The instances' timers are out of step with each other, so
 * there is no nominal time: whoever fires first runs it, and for most of an interval after that nobody else does, by the
 * clock of Redis. Needs `ScheduleModule.forRoot()`.
 *
 * @param intervalMs milliseconds between runs, 100 to 2147483647
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right
 */
export function SingletonInterval(intervalMs: number, options: SingletonIntervalOptions = {}): JobMethodDecorator {
  checkInteger('intervalMs', intervalMs ?? NaN, 100, LONGEST_INTERVAL_MS);
  const keepMs = Math.floor(intervalMs - Math.min(TIMER_SLACK.ms, intervalMs * TIMER_SLACK.share));
  const schedule = options?.name === undefined ? Interval(intervalMs) : Interval(options.name, intervalMs);
  return singletonMethod(
    (where) => resolveJobOptions(options, where, JOB_OPTION_NAMES),
    schedule,
    () => () => ({ tick: 'interval', keepMs }),
  );
}
