import { Inject, Optional } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { type CronTick, cronTickAt } from './job-ticks.js';
import type { CronTimeLike } from './nominal-tick.js';

/** The part of the schedule of a `@Cron` that decides when its ticks are. */
export interface CronSchedule {
  readonly cronTime: unknown;
  /** The name of the job in the scheduler's registry, if it has one. */
  readonly name: string | undefined;
  readonly timeZone: string | undefined;
  readonly utcOffset: number | undefined;
}

const REGISTRY = Symbol.for('SchedulerRegistry (import ScheduleModule.forRoot() in your root module)');

/**
 * Declares the scheduler's registry as an injected property of the class.
 *
 * @returns a function that finds the tick that fires now on an instance of the class
 */
export function declareCronTicks(prototype: object, schedule: CronSchedule): (instance: object) => CronTick {
  Inject(SchedulerRegistry)(prototype, REGISTRY);
  // Optional, so that the class can be tested without the ScheduleModule.
  Optional()(prototype, REGISTRY);
  let computed: CronTimeLike | undefined;

  return (instance) => {
    const now = Date.now();
    const registry = (instance as { [REGISTRY]?: SchedulerRegistry })[REGISTRY];
    const current = currentCronTime(registry, schedule.name);
    if (current) return cronTickAt(current, now);
    const once = oneShotTime(schedule.cronTime);
    if (once !== undefined) return { at: once, cronTime: undefined };
    computed ??= parse(registry, schedule);
    return computed ? cronTickAt(computed, now) : { at: Math.floor(now / 1000) * 1000, cronTime: undefined };
  };
}

/** Returns the time of a job that is scheduled by a Date, or by a DateTime of luxon. */
function oneShotTime(cronTime: unknown): number | undefined {
  if (cronTime instanceof Date) return cronTime.getTime();
  const { toMillis } = cronTime as { toMillis?: () => number };
  return typeof toMillis === 'function' ? toMillis.call(cronTime) : undefined;
}

/** Returns the current schedule of a job with a name: the application may have changed it in the registry. */
function currentCronTime(registry: SchedulerRegistry | undefined, name: string | undefined): CronTimeLike | undefined {
  if (name === undefined || !registry?.doesExist('cron', name)) return undefined;
  return registry.getCronJob(name).cronTime as unknown as CronTimeLike;
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
