import { Inject, Optional } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import { inRootContext } from '../../core/util/async-contexts.js';
import type { CronJobLike } from './cron-job-class.js';
import { keepDate, type StatedAt } from './job-schedules.js';
import { type CronTick, cronTickAt, cronTicksOf, type ScheduledJob, scheduleOf } from './job-ticks.js';
import type { CronTimeLike } from './nominal-tick.js';

/** The part of the schedule of a `@Cron` that decides when its ticks are. */
export interface CronSchedule {
  /** The date of a job that is due once, in milliseconds since the Unix epoch. */
  readonly at: number | undefined;
  /** As the scheduler parses it. `undefined` for a scheduler of an unknown version. */
  readonly parsed: CronTimeLike | undefined;
  /** The name of the job in the scheduler's registry, if it has one. */
  readonly name: string | undefined;
  readonly disabled: boolean;
}

/** The ticks of a `@Cron` method. */
export interface DeclaredTicks {
  /** The tick that fires now on an instance of the class. @param wallNow milliseconds since the Unix epoch */
  now(instance: object, wallNow: number): CronTick;
  /**
   * When ticks are due, as the job of an instance is scheduled at the moment; `undefined` while it is disabled or
   * stopped. Not set for a job on a single date.
   */
  readonly schedule: ((instance: object) => TickSchedule | undefined) | undefined;
  /** The scheduler's registry in the application of an instance. */
  registryOf(instance: object): SchedulerRegistry | undefined;
}

const REGISTRY = Symbol.for('SchedulerRegistry (import ScheduleModule.forRoot() in your root module)');

/** Declares the scheduler's registry as an injected property of the class. */
export function declareCronTicks(prototype: object, { at, parsed, name, disabled }: CronSchedule): DeclaredTicks {
  Inject(SchedulerRegistry)(prototype, REGISTRY);
  // Optional, so that the class can be tested without the ScheduleModule.
  Optional()(prototype, REGISTRY);
  const registryOf = (instance: object) => (instance as { [REGISTRY]?: SchedulerRegistry })[REGISTRY];
  /** Without a scheduler that has jobs, nothing fires: a call by hand is no tick of the schedule. */
  const scheduledAs = (registry: SchedulerRegistry | undefined) => (registry?.getCronJobs().size ? parsed : undefined);

  const now = (instance: object, wallNow: number): CronTick => {
    const registry = registryOf(instance);
    const current = currentJob(registry, name)?.cronTime;
    if (current) return cronTickAt(current, wallNow);
    if (at !== undefined) return { at, cronTime: undefined };
    const cronTime = scheduledAs(registry);
    return cronTime ? cronTickAt(cronTime, wallNow) : { at: Math.floor(wallNow / 1000) * 1000, cronTime: undefined };
  };
  const schedule = (instance: object): TickSchedule | undefined => {
    const registry = registryOf(instance);
    if (name !== undefined) return scheduleOf(currentJob(registry, name));
    const cronTime = disabled ? undefined : scheduledAs(registry);
    return cronTime && cronTicksOf(cronTime);
  };
  return { now, schedule: at === undefined ? schedule : undefined, registryOf };
}

/** Returns a job with a name, with its current schedule: the application may have changed it in the registry. */
function currentJob(registry: SchedulerRegistry | undefined, name: string | undefined): ScheduledJob | undefined {
  if (name === undefined || !registry?.doesExist('cron', name)) return undefined;
  return registry.getCronJob(name) as unknown as ScheduledJob;
}

/** By registry: the dates of jobs that are started when the scheduler adds them. */
const startedAtDates = new WeakMap<SchedulerRegistry, Set<unknown>>();

/**
 * Starts the job of a date when the scheduler has made it. The scheduler made it stopped: started by itself, a job whose
 * date passes meanwhile, or just before its timer looks again, ends the process.
 *
 * @param date what the scheduler was given
 * @throws InvalidLockOptionsError when the date is over before the application has started
 */
export function startAtDate(registry: SchedulerRegistry | undefined, date: unknown, at: number, place: StatedAt): void {
  if (!registry) return;
  if (at <= Date.now()) {
    throw new InvalidLockOptionsError(
      `${place.option} of ${place.where} is over: ${new Date(at).toISOString()}. Set disabled: true, or remove the ` +
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
