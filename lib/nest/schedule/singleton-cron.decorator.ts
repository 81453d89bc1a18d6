import { Cron, type CronOptions, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { checked, OptionTable } from '../../core/api/option-table.js';
import { declareCronTicks, startAtDate } from './cron-ticks.js';
import { type CronTimeClass, cronTimeClass } from './cron-job-class.js';
import { parseCronTime, timeOf } from './job-schedules.js';
import { checkMissedOfDate, jobTickOf } from './job-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import {
  describeJob,
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
 * - `@SingletonCron(CronExpression.EVERY_DAY_AT_MIDNIGHT, { timeZone: 'Europe/Vienna', onCrash: 'retry' })` above
 *   `async nightlyReport({ tick, lease }: SingletonRun) {}`
 *
 * The method may be sync, as with `@Cron`. A call of it then returns a promise all the same.
 *
 * @param cronTime a cron expression, a Date, or a DateTime of luxon
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid, the scheduler could not parse
 *   `cronTime`, or it has no tick at all
 */
export function SingletonCron(
  cronTime: Parameters<typeof Cron>[0],
  options: SingletonCronOptions = {},
): JobMethodDecorator {
  return singletonMethod('SingletonCron', (where, prototype) => {
    const resolved = resolveJobOptions(options, where, CRON_OPTIONS);
    const { timeZone, utcOffset, name, disabled = false } = options;
    const at = typeof cronTime === 'string' ? undefined : timeOf(cronTime);
    if (at !== undefined) checkDateOptions(resolved, options, where);
    const place = { where: describeJob(name, where), option: 'cronTime' };
    // A DateTime may be of another copy of luxon than that of the scheduler.
    const schedule = { cronTime: at === undefined ? cronTime : new Date(at), timeZone, utcOffset };
    CronTime ??= cronTimeClass(ScheduleModule, SchedulerRegistry);
    // A date may be over where nothing is scheduled, such as in a test.
    const check = at === undefined && !disabled;
    const parsed = CronTime && parseCronTime(CronTime, schedule, place, (time) => check && time.sendAt());
    const ticks = declareCronTicks(prototype, { at, parsed, name, disabled });
    // The scheduler keeps this object, by which its job is known again.
    const date = at === undefined ? undefined : (parsed?.source as CronSource | undefined);
    const cronOptions = pickCronOptions(options);
    return {
      options: resolved,
      schedule: date ? Cron(date, { ...cronOptions, disabled: true }) : Cron(cronTime, cronOptions),
      ticks: {
        now: (instance, wallNow) => jobTickOf(ticks.now(instance, wallNow), resolved),
        ...(ticks.schedule && { schedule: ticks.schedule }),
        ...(date && !disabled && { mount: (instance) => startAtDate(ticks.registryOf(instance), date, at!, place) }),
      },
    };
  });
}

type CronSource = Parameters<typeof Cron>[0];

/** Found when the first class is defined. */
let CronTime: CronTimeClass | undefined;

/** @throws InvalidLockOptionsError */
function checkDateOptions(resolved: ResolvedJobOptions, options: SingletonCronOptions, where: string): void {
  checkMissedOfDate(resolved, where);
  if ((options as { initialDelay?: unknown }).initialDelay === undefined) return;
  throw new InvalidLockOptionsError(
    `initialDelay in the schedule of ${where} needs a cron expression. A job on a single date starts at that date. ` +
      'Leave initialDelay out.',
    'initialDelay',
  );
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
