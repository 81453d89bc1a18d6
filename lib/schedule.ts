/**
 * Cron jobs, intervals and timeouts that run on one instance. Needs `@nestjs/schedule`.
 *
 * @module nestjs-redis-lock/schedule
 */
export { SingletonCron, type SingletonCronOptions } from './nest/schedule/singleton-cron.decorator.js';
export {
  SingletonInterval,
  type SingletonIntervalOptions,
  SingletonTimeout,
  type SingletonTimeoutOptions,
} from './nest/schedule/singleton-timed.decorators.js';
export type { SingletonRun } from './core/singleton/singleton-run-options.js';
export type { JobMethod } from './nest/schedule/run-job.js';
export type { JobMethodDecorator } from './nest/schedule/singleton-method.js';
export type { SingletonJobOptions, SingletonTickOptions } from './nest/schedule/singleton-options.js';
export { SingletonJobs } from './nest/jobs/singleton-jobs.js';
export type { HistoryOptions, PauseOptions, ResumeOptions, RunNowOptions } from './nest/jobs/job-call-options.js';
export type { JobInfo, JobRun } from './core/jobs/job-info.js';
export type { JobInstance, JobPause, MissedSpan, RunOutcome, RunRecord } from './core/store/job-store.js';
export type { AddedCronJob, AddedDateJob, AddedIntervalJob, AddedJob } from './nest/jobs/added-job-options.js';
export { getSingletonJobsToken, InjectSingletonJobs } from './nest/tokens.js';
