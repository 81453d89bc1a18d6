import { Cron, type CronOptions } from '@nestjs/schedule';
import { checked, OptionTable } from '../../core/api/option-table.js';
import { declareCronTicks } from './cron-ticks.js';
import { checkMissedOfDate, jobTickOf } from './job-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import {
  type ResolvedJobOptions,
  resolveJobOptions,
  type SingletonTickOptions,
  TICK_OPTIONS,
} from './singleton-options.js';

/** The options of `@SingletonCron`: those of `@Cron`, and how the job runs over the fleet. */
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

/** Those of Nest are checked by Nest. */
const CRON_OPTIONS = new OptionTable({
  ...TICK_OPTIONS.options,
  ...Object.fromEntries(CRON_OPTION_NAMES.map((name) => [name, checked()])),
});

/**
 * `@Cron`, but each tick starts on at most one instance of the fleet, and runs do not overlap. On the other instances,
 * the method returns without running. Needs `ScheduleModule.forRoot()`.
 *
 * A tick is identified by the name of the job and its scheduled time, and the clock of Redis decides whether it may
 * still start. So no tick starts twice, even if the clock of an instance is wrong or a process is suspended. A tick
 * that is late by more than `maxClockSkewMs` and `waitMs` together is skipped. If you call the method yourself, it runs
 * as the tick that was due last. It returns `undefined` if that tick has run already or is too late.
 *
 * ```ts
 * @SingletonCron(CronExpression.EVERY_DAY_AT_MIDNIGHT, { timeZone: 'Europe/Vienna', onCrash: 'retry' })
 * async nightlyReport({ tick, lease }: SingletonRun) {}
 * ```
 *
 * The method may be sync, as with `@Cron`. A call of it then returns a promise all the same.
 *
 * @param cronTime a cron expression, a Date, or a DateTime of luxon
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonCron(
  cronTime: Parameters<typeof Cron>[0],
  options: SingletonCronOptions = {},
): JobMethodDecorator {
  // Options that are no object are refused later, when the method is known for the message.
  const { timeZone, utcOffset, name, disabled } = options ?? {};
  const resolve = (where: string): ResolvedJobOptions => {
    const resolved = resolveJobOptions(options, where, CRON_OPTIONS);
    if (typeof cronTime !== 'string') checkMissedOfDate(resolved, where);
    return resolved;
  };
  return singletonMethod(resolve, Cron(cronTime, pickCronOptions(options)), (prototype, resolved) => {
    const ticks = declareCronTicks(prototype, { cronTime, name, timeZone, utcOffset, disabled });
    const { schedule } = ticks;
    return {
      now: (instance, wallNow) => jobTickOf(ticks.now(instance, wallNow), resolved),
      ...(schedule && { schedule }),
    };
  });
}

/**
 * Picks the options of the scheduler. It passes all others on to the package `cron`, also those that it does not know.
 */
function pickCronOptions(options: SingletonCronOptions): CronOptions {
  const entries = Object.entries(options ?? {}).filter(
    ([option]) => option === 'name' || CRON_OPTION_NAMES.includes(option),
  );
  return Object.fromEntries(entries) as CronOptions;
}
