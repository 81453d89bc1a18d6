/**
 * Cron jobs, intervals and timeouts that run on one instance, also under their names in `@nestjs/schedule`, which they
 * need.
 *
 * @module nestjs-redis-lock/schedule
 */
export { SingletonCron, type SingletonCronOptions } from './features/jobs/nest/singleton-cron.decorator.js';
export {
  SingletonInterval,
  type SingletonIntervalOptions,
  SingletonTimeout,
  type SingletonTimeoutOptions,
} from './features/jobs/nest/singleton-timed.decorators.js';

// A file with jobs can import these from here in place of `@nestjs/schedule`. Not `export *`: decorators that a later
// version adds would run on every instance.
export { SingletonCron as Cron } from './features/jobs/nest/singleton-cron.decorator.js';
export {
  SingletonInterval as Interval,
  SingletonTimeout as Timeout,
} from './features/jobs/nest/singleton-timed.decorators.js';
export { CronExpression, type CronOptions, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';

export type { SingletonRun } from './features/jobs/core/singleton-run-options.js';
export type { JobMethodDecorator } from './features/jobs/nest/singleton-method.js';

// What an operator sees and does
export { SingletonJobs } from './features/jobs/nest/added/singleton-jobs.js';
export { type JobInfo, JobNotFoundError, type JobRun } from './features/jobs/core/job-info.js';
export type { AddedJob } from './features/jobs/nest/added/job-options.js';
export { getSingletonJobsToken, InjectSingletonJobs } from './nest/service-parts.js';
