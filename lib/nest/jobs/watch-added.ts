import type { SchedulerRegistry } from '@nestjs/schedule';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import type { OwedRun } from '../../core/store/job-store.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { scheduleOf } from '../schedule/job-ticks.js';
import { watchJob } from '../schedule/job-watch.js';
import { type JobToRun, runForMissed } from '../schedule/run-job.js';
import { partsOf } from '../service-parts.js';
import type { AddedJob } from './added-job-options.js';
import type { AddedJobs } from './added-jobs.js';
import type { CronJobLike } from '../schedule/cron-job-class.js';

/** Watches a job that was added. One on a single date misses no tick, and leaves no trace. */
export function watchAdded(
  service: RedisLockService,
  added: AddedJobs,
  toRun: JobToRun,
  { job: { cron, intervalMs }, registry }: { readonly job: AddedJob; readonly registry: SchedulerRegistry },
): void {
  const watch = partsOf(service)?.jobs;
  if (!watch || (typeof cron !== 'string' && intervalMs === undefined)) return;
  const { name, options } = toRun;
  const schedule = (): TickSchedule | undefined =>
    added.find(registry, name) && scheduleOf(registry.getCronJob(name) as unknown as CronJobLike);
  const runOwed = ({ tick }: OwedRun) => runForMissed(service, toRun, { tick, schedule: schedule() });
  watchJob(watch, { name, options, schedule: intervalMs === undefined ? schedule : undefined, runOwed });
}
