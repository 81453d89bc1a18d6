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
 * A tick is known by the job's name and the time it was scheduled for, and Redis's clock decides whether it may still start: no
 * tick starts twice, however wrong the clock of an instance is and however long a process stands still. A tick that is too late
 * (by more than `maxClockSkewMs` and `waitMs`) is skipped. If you call the method yourself, that counts as the tick that was due
 * last: it returns `undefined` when that has run or is too late.
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
    return (instance) => {
      const at = tickOf(instance);
      return { tick: new Date(at).toISOString(), keepMs: maxClockSkewMs, due: { at, maxClockSkewMs } };
    };
  });
}

/** What is the scheduler's own business: it hands unknown options on to the package `cron`. */
function pickCronOptions(options: SingletonCronOptions): CronOptions {
  const entries = Object.entries(options ?? {}).filter(
    ([option]) => option === 'name' || CRON_OPTION_NAMES.includes(option),
  );
  return Object.fromEntries(entries) as CronOptions;
}
