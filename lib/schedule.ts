/**
 * Cron jobs, intervals and timeouts that run on one instance. Needs `@nestjs/schedule`.
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
export type { SingletonRun } from './features/jobs/core/singleton-run-options.js';
export type { JobMethodDecorator } from './features/jobs/nest/singleton-method.js';

// What an operator sees and does
export { SingletonJobs } from './features/jobs/nest/added/singleton-jobs.js';
export { type JobInfo, JobNotFoundError, type JobRun } from './features/jobs/core/job-info.js';
export type { AddedJob } from './features/jobs/nest/added/job-options.js';
export { getSingletonJobsToken, InjectSingletonJobs } from './nest/tokens.js';
