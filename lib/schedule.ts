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
export type { JobMethodDecorator } from './nest/schedule/singleton-method.js';

// What an operator sees and does
export { SingletonJobs } from './nest/jobs/singleton-jobs.js';
export { type JobInfo, JobNotFoundError, type JobRun } from './core/jobs/job-info.js';
export type { AddedJob } from './nest/jobs/job-options.js';
export { getSingletonJobsToken, InjectSingletonJobs } from './nest/tokens.js';
