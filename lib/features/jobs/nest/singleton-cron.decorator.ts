import type { Job, RunTrigger } from './run-job.js';
import { Cron, type CronOptions, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Inject, Optional } from '@nestjs/common';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { Option, OptionTable } from '../../../kernel/api/validation.js';
import {
  type CronJobLike,
  type CronTimeClass,
  cronTimeClass,
  keepDate,
  parseCronTime,
  type StatedAt,
  timeOf,
  type TimerTime,
} from './job-schedules.js';
import { checkMissedOfDate, cronTickAt, cronTicksOf, dateTick, scheduleOf } from './job-ticks.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { describeJob, resolveJobOptions, type SingletonTickOptions, TICK_OPTIONS } from './singleton-options.js';
import type { TickSchedule } from '../core/watched-job.js';
import { inRootContext } from '../../../kernel/util/async-contexts.js';

/** The options of `@SingletonCron`: the options of `@Cron` and of singleton jobs. */
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

/** Nest checks its own. */
const CRON_OPTIONS = new OptionTable({
  ...TICK_OPTIONS.options,
  ...Object.fromEntries(CRON_OPTION_NAMES.map((name) => [name, Option.checked()])),
});

/**
 * Like `@Cron`, but each tick starts on at most one instance of the fleet, and runs do not overlap. On the other
 * instances, the method returns without running. Needs `ScheduleModule.forRoot()`.
 *
 * A tick is identified by the name of the job and the scheduled time, and the clock of Redis decides whether it may
 * still start. So apart from reruns after a crash, no tick starts twice, even if the clock of an instance is wrong or a
 * process is suspended. A tick that is late by more than `maxClockSkewMs`, `waitMs` and `jitterMs` together is skipped.
 * If you call the method yourself, it runs the last tick that was due, or returns `undefined` if that tick has already
 * run or is too late.
 *
 * - `@SingletonCron(CronExpression.EVERY_DAY_AT_MIDNIGHT, { timeZone: 'Europe/Vienna', onCrash: 'retry' })` above
 *   `async nightlyReport({ tick, lease }: SingletonRun) {}`
 *
 * The method may be sync, as with `@Cron`, but calling it still returns a promise.
 *
 * @param cronTime a cron expression, a `Date`, or a luxon `DateTime`
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid, or if `cronTime` cannot be parsed
 *   or never has a tick
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
    // A DateTime may be of another copy of luxon than the scheduler's.
    const schedule = { cronTime: at === undefined ? cronTime : new Date(at), timeZone, utcOffset };
    CronTime ??= cronTimeClass(ScheduleModule, SchedulerRegistry);
    // A date may have passed if nothing is scheduled, such as in a test.
    const check = at === undefined && !disabled;
    const parsed = CronTime && parseCronTime(CronTime, schedule, place, (time) => check && time.sendAt());
    const ticks = declareCronTicks(prototype, { at, parsed, name, disabled, options: resolved });
    // The scheduler keeps this object, by which its job is known again.
    const date = at === undefined ? undefined : (parsed?.source as CronSource | undefined);
    const cronOptions = pickCronOptions(options);
    return {
      options: resolved,
      schedule: date ? Cron(date, { ...cronOptions, disabled: true }) : Cron(cronTime, cronOptions),
      ticks: {
        now: ticks.now,
        ...(ticks.schedule && { schedule: ticks.schedule }),
        ...(date && !disabled && { mount: (instance) => startAtDate(ticks.registryOf(instance), date, at!, place) }),
      },
    };
  });
}

type CronSource = Parameters<typeof Cron>[0];

/** Found when the first class is defined. */
let CronTime: CronTimeClass | undefined;

function checkDateOptions(resolved: Job['options'], options: SingletonCronOptions, where: string): void {
  checkMissedOfDate(resolved, where);
  if ((options as { initialDelay?: unknown }).initialDelay === undefined) return;
  throw new InvalidLockOptionsError(
    `initialDelay in the schedule of ${where} needs a cron expression. A job on a single date starts at that date. ` +
      'Leave initialDelay out.',
    'initialDelay',
  );
}

/** Picks the options of the scheduler, which passes even unknown options on to the package `cron`. */
function pickCronOptions(options: SingletonCronOptions): CronOptions {
  const entries = Object.entries(options ?? {}).filter(
    ([option]) => option === 'name' || CRON_OPTION_NAMES.includes(option),
  );
  return Object.fromEntries(entries) as CronOptions;
}

/** The part of the schedule of a `@Cron` that decides when its ticks are. */
interface CronSchedule extends Pick<SingletonCronOptions, 'name' | 'disabled'> {
  /** The date of a job that is due once, in milliseconds since the Unix epoch. */
  readonly at: number | undefined;
  /** As the scheduler parses it. `undefined` for a scheduler of an unknown version. */
  readonly parsed: TimerTime | undefined;
  readonly options: Job['options'];
}

const REGISTRY = Symbol.for('SchedulerRegistry (import ScheduleModule.forRoot() in your root module)');

/** Declares the scheduler's registry as an injected property of the class. */
function declareCronTicks(prototype: object, { at, parsed, name, disabled, options }: CronSchedule) {
  Inject(SchedulerRegistry)(prototype, REGISTRY);
  // Optional, so that the class can be tested without the ScheduleModule.
  Optional()(prototype, REGISTRY);
  const registryOf = (instance: object) => (instance as { [REGISTRY]?: SchedulerRegistry })[REGISTRY];
  /** Without a scheduler that has jobs, nothing fires: a call by hand is no tick of the schedule. */
  const scheduledAs = (registry: SchedulerRegistry | undefined) => (registry?.getCronJobs().size ? parsed : undefined);

  /** The tick that fires now on an instance of the class. */
  const now = (instance: object, wallNow: number): RunTrigger['tick'] => {
    const registry = registryOf(instance);
    const current = currentJob(registry, name)?.cronTime;
    if (current) return cronTickAt(current, wallNow, options);
    if (at !== undefined) return dateTick(at, options);
    const cronTime = scheduledAs(registry);
    return cronTime ? cronTickAt(cronTime, wallNow, options) : dateTick(Math.floor(wallNow / 1000) * 1000, options);
  };
  /** When ticks are due, as the job of an instance is scheduled at the moment; none while it is disabled or stopped. */
  const schedule = (instance: object): TickSchedule | undefined => {
    const registry = registryOf(instance);
    if (name !== undefined) return scheduleOf(currentJob(registry, name));
    const cronTime = disabled ? undefined : scheduledAs(registry);
    return cronTime && cronTicksOf(cronTime);
  };
  return { now, schedule: at === undefined ? schedule : undefined, registryOf };
}

/** Returns a job with a name, with its current schedule: the application may have changed it in the registry. */
function currentJob(registry: SchedulerRegistry | undefined, name: string | undefined): CronJobLike | undefined {
  if (name === undefined || !registry?.doesExist('cron', name)) return undefined;
  return registry.getCronJob(name) as unknown as CronJobLike;
}

/** By registry: the dates of jobs that are started when the scheduler adds them. */
const startedAtDates = new WeakMap<SchedulerRegistry, Set<unknown>>();

/**
 * Starts the job of a date when the scheduler has made it, stopped: if the scheduler started it, a job whose date
 * passes before that, or just before its timer checks again, would end the process.
 *
 * @param date the date for the scheduler
 * @throws InvalidLockOptionsError when the date has passed before the application has started
 */
function startAtDate(registry: SchedulerRegistry | undefined, date: unknown, at: number, place: StatedAt): void {
  if (!registry) return;
  if (at <= Date.now()) {
    throw new InvalidLockOptionsError(
      `${place.option} of ${place.where} is in the past: ${new Date(at).toISOString()}. Set disabled: true, or remove the ` +
        'decorator.',
      place.option,
    );
  }
  const known = startedAtDates.get(registry);
  if (known) return void known.add(date);
  const dates = new Set([date]);
  startedAtDates.set(registry, dates);
  const add = registry.addCronJob.bind(registry);
  registry.addCronJob = (name, added) => {
    add(name, added);
    const job = added as unknown as CronJobLike;
    if (!dates.has(job.cronTime.source)) return;
    keepDate(job.cronTime);
    inRootContext(() => job.start());
  };
}
