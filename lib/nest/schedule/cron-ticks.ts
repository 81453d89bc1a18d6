import { Inject, Optional } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import { type CronTick, cronTickAt, cronTicksOf, type ScheduledJob, scheduleOf } from './job-ticks.js';
import type { CronTimeLike } from './nominal-tick.js';

/** The part of the schedule of a `@Cron` that decides when its ticks are. */
export interface CronSchedule {
  readonly cronTime: unknown;
  /** The name of the job in the scheduler's registry, if it has one. */
  readonly name: string | undefined;
  readonly timeZone: string | undefined;
  readonly utcOffset: number | undefined;
  readonly disabled: boolean | undefined;
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
}

const REGISTRY = Symbol.for('SchedulerRegistry (import ScheduleModule.forRoot() in your root module)');

/** Declares the scheduler's registry as an injected property of the class. */
export function declareCronTicks(prototype: object, schedule: CronSchedule): DeclaredTicks {
  Inject(SchedulerRegistry)(prototype, REGISTRY);
  // Optional, so that the class can be tested without the ScheduleModule.
  Optional()(prototype, REGISTRY);
  let computed: CronTimeLike | undefined;
  const registryOf = (instance: object) => (instance as { [REGISTRY]?: SchedulerRegistry })[REGISTRY];
  const once = oneShotTime(schedule.cronTime);
  const { name } = schedule;

  const now = (instance: object, wallNow: number): CronTick => {
    const registry = registryOf(instance);
    const current = currentJob(registry, name)?.cronTime;
    if (current) return cronTickAt(current, wallNow);
    if (once !== undefined) return { at: once, cronTime: undefined };
    computed ??= parse(registry, schedule);
    return computed ? cronTickAt(computed, wallNow) : { at: Math.floor(wallNow / 1000) * 1000, cronTime: undefined };
  };
  const scheduled = (instance: object): TickSchedule | undefined => {
    const registry = registryOf(instance);
    if (name !== undefined) return scheduleOf(currentJob(registry, name));
    if (schedule.disabled) return undefined;
    computed ??= parse(registry, schedule);
    return computed && cronTicksOf(computed);
  };
  return { now, schedule: once === undefined ? scheduled : undefined };
}

/** Returns the time of a job that is scheduled by a Date, or by a DateTime of luxon. */
function oneShotTime(cronTime: unknown): number | undefined {
  if (cronTime instanceof Date) return cronTime.getTime();
  const { toMillis } = cronTime as { toMillis?: () => number };
  return typeof toMillis === 'function' ? toMillis.call(cronTime) : undefined;
}

/** Returns a job with a name, with its current schedule: the application may have changed it in the registry. */
function currentJob(registry: SchedulerRegistry | undefined, name: string | undefined): ScheduledJob | undefined {
  if (name === undefined || !registry?.doesExist('cron', name)) return undefined;
  return registry.getCronJob(name) as unknown as ScheduledJob;
}

/**
 * Parses the expression in the same way as the scheduler. The package `cron` is a dependency of `@nestjs/schedule` and
 * not of this package, so it cannot be imported. But when a job fires, the registry has a job, and the job has the
 * class.
 */
function parse(registry: SchedulerRegistry | undefined, schedule: CronSchedule): CronTimeLike | undefined {
  const anyJob = registry?.getCronJobs().values().next().value;
  if (!anyJob) return undefined;
  const CronTime = anyJob.cronTime.constructor as new (
    source: unknown,
    timeZone: string | undefined,
    utcOffset: number | undefined,
  ) => CronTimeLike;
  return new CronTime(schedule.cronTime, schedule.timeZone, schedule.utcOffset);
}
