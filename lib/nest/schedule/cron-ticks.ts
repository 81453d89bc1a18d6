import { Inject, Optional } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { type CronTimeLike, nominalTick } from './nominal-tick.js';

/** How a `@Cron` is scheduled, as far as it matters for which tick it is. */
export interface CronSchedule {
  readonly cronTime: unknown;
  /** The name of the job in the scheduler's registry, if it was given one. */
  readonly name: string | undefined;
  readonly timeZone: string | undefined;
  readonly utcOffset: number | undefined;
}

const REGISTRY = Symbol.for('SchedulerRegistry (import ScheduleModule.forRoot() in your root module)');

/**
 * Declares the scheduler's registry as an injected property of the class.
 *
 * @returns the nominal time of the tick that fires now on an instance of it, in milliseconds since the Unix epoch
 */
export function declareCronTicks(prototype: object, schedule: CronSchedule): (instance: object) => number {
  Inject(SchedulerRegistry)(prototype, REGISTRY);
  // Optional: without the ScheduleModule nothing fires, but the class can still be tested.
  Optional()(prototype, REGISTRY);
  let computed: CronTimeLike | undefined;

  return (instance) => {
    const now = Date.now();
    const registry = (instance as { [REGISTRY]?: SchedulerRegistry })[REGISTRY];
    const current = currentCronTime(registry, schedule.name);
    if (current) return nominalTick(current, now);
    const once = oneShotTime(schedule.cronTime);
    if (once !== undefined) return once;
    computed ??= parse(registry, schedule);
    return computed ? nominalTick(computed, now) : Math.floor(now / 1000) * 1000;
  };
}

/** The time of a job that is scheduled by a Date, or by a DateTime of luxon. */
function oneShotTime(cronTime: unknown): number | undefined {
  if (cronTime instanceof Date) return cronTime.getTime();
  const { toMillis } = cronTime as { toMillis?: () => number };
  return typeof toMillis === 'function' ? toMillis.call(cronTime) : undefined;
}

/** A job with a name may have been given another time since it was declared. */
function currentCronTime(registry: SchedulerRegistry | undefined, name: string | undefined): CronTimeLike | undefined {
  if (name === undefined || !registry?.doesExist('cron', name)) return undefined;
  return registry.getCronJob(name).cronTime as unknown as CronTimeLike;
}

/**
 * Parses the expression as the scheduler does. The package `cron` is a dependency of `@nestjs/schedule` and not ours, so
 * it cannot be imported; but where a job fires, the registry has a job, and through it the class that parses.
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
