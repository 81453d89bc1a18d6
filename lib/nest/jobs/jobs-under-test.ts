import type { SchedulerRegistry } from '@nestjs/schedule';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { cronTickAt, scheduleOf } from '../schedule/job-ticks.js';
import { callManually, type FiredTick, type JobToRun, runFired } from '../schedule/run-job.js';
import type { DecoratedJob, SingletonJobExplorer } from '../schedule/singleton-job.explorer.js';
import type { ResolvedJobOptions } from '../schedule/singleton-options.js';
import { partsOf } from '../service-parts.js';
import type { AddedJobs } from './added-jobs.js';
import type { CronJobLike } from '../schedule/cron-job-class.js';

/** A job of one application, as a test fires it. */
export interface JobUnderTest {
  readonly options: ResolvedJobOptions;
  /** When its ticks are due, as it is scheduled at the moment; `undefined` while it is stopped. Not set for other jobs. */
  readonly schedule: (() => TickSchedule | undefined) | undefined;
  /** What a tick at a time is called. `isDue`: whether the tick is a time. */
  tickAt(wallNow: number): { readonly tick: string; readonly isDue: boolean };
  /** Runs a tick, with all decorators of the method. @returns its result, and whether the decorator of the job was reached */
  fire(fired: FiredTick): Promise<{ readonly result: unknown; readonly isTaken: boolean }>;
}

/** The jobs of one application, for a test. */
export interface JobsUnderTest {
  readonly service: RedisLockService;
  names(): string[];
  find(name: string): JobUnderTest | undefined;
}

export function jobsUnderTestOf(service: object): JobsUnderTest | undefined {
  return partsOf(service)?.jobsUnderTest as JobsUnderTest | undefined;
}

/** Where the jobs of an application are found. */
interface JobPlaces {
  readonly service: RedisLockService;
  readonly explorer: SingletonJobExplorer;
  readonly added: AddedJobs;
  readonly registry: () => SchedulerRegistry | undefined;
  readonly names: () => string[];
}

export function jobsUnderTest({ service, explorer, added, registry, names }: JobPlaces): JobsUnderTest {
  return {
    service,
    names,
    find(name) {
      const scheduler = registry();
      const toRun = scheduler && added.find(scheduler, name);
      if (toRun) return addedJob(service, toRun, scheduler);
      const decorated = explorer.jobs.get(name);
      return decorated && decoratedJob(decorated);
    },
  };
}

function decoratedJob({ name, call, options, schedule, tickAt }: DecoratedJob): JobUnderTest {
  return {
    options,
    schedule,
    tickAt(wallNow) {
      const { tick, due } = tickAt(wallNow);
      return { tick, isDue: due !== undefined };
    },
    fire: (fired) => callManually(name, fired.tick.tick, call, { fired }),
  };
}

function addedJob(service: RedisLockService, toRun: JobToRun, registry: SchedulerRegistry): JobUnderTest {
  const { name, options } = toRun;
  const fire: JobUnderTest['fire'] = async (fired) => ({
    result: await runFired(service, toRun, fired),
    isTaken: true,
  });
  if (!registry.doesExist('cron', name)) {
    return { options, schedule: undefined, tickAt: () => ({ tick: 'interval', isDue: false }), fire };
  }
  const job = (): CronJobLike => registry.getCronJob(name) as unknown as CronJobLike;
  return {
    options,
    schedule: job().cronTime.realDate ? undefined : () => scheduleOf(job()),
    tickAt: (wallNow) => ({ tick: new Date(cronTickAt(job().cronTime, wallNow).at).toISOString(), isDue: true }),
    fire,
  };
}
