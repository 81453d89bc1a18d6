import { Cron, type CronOptions } from '@nestjs/schedule';
import { declareCronTicks } from './cron-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import {
  type ResolvedJobOptions,
  resolveJobOptions,
  type SingletonTickOptions,
  TICK_OPTION_NAMES,
} from './singleton-options.js';

/** What `@SingletonCron` takes: the options of `@Cron`, and how it runs over the fleet. */
export type SingletonCronOptions = CronOptions & SingletonTickOptions;

const CRON_OPTION_NAMES = [
  'timeZone',
  'utcOffset',
  'unrefTimeout',
  'waitForCompletion',
  'disabled',
  'threshold',
  'initialDelay',
];

/**
 * `@Cron`, but each tick starts on at most one instance of the fleet, and runs do not overlap. The others return silently.
 * Needs `ScheduleModule.forRoot()`.
 *
 * A tick is known by the job's name and the time it was scheduled for, so clocks that differ (up to `maxClockSkewMs`) do
 * not run it twice. If you call the method yourself, that counts as the tick that was due last.
 *
 * ```ts
 * @SingletonCron(CronExpression.EVERY_DAY_AT_MIDNIGHT, { timeZone: 'Europe/Vienna', onCrash: 'retry' })
 * async nightlyReport({ tick, lease }: SingletonRun) {}
 * ```
 *
 * @param cronTime a cron expression, a Date, or a DateTime of luxon
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right
 */
export function SingletonCron(
  cronTime: Parameters<typeof Cron>[0],
  options: SingletonCronOptions = {},
): JobMethodDecorator {
  // What is no object is refused below, where the method is known.
  const { timeZone, utcOffset, name } = options ?? {};
  const resolve = (where: string): ResolvedJobOptions =>
    resolveJobOptions(options, where, [...TICK_OPTION_NAMES, ...CRON_OPTION_NAMES]);
  return singletonMethod(resolve, Cron(cronTime, pickCronOptions(options)), (prototype, { maxClockSkewMs }) => {
    const tickOf = declareCronTicks(prototype, { cronTime, name, timeZone, utcOffset });
    return (instance) => ({ tick: new Date(tickOf(instance)).toISOString(), keepMs: maxClockSkewMs });
  });
}

/** What is the scheduler's own business: it hands unknown options on to the package `cron`. */
function pickCronOptions(options: SingletonCronOptions): CronOptions {
  const entries = Object.entries(options ?? {}).filter(
    ([option]) => option === 'name' || CRON_OPTION_NAMES.includes(option),
  );
  return Object.fromEntries(entries) as CronOptions;
}
