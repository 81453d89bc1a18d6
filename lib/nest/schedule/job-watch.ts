import { Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { quote } from '../../core/util/quoted.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { partsOf, type ServiceParts } from '../service-parts.js';
import type { SingletonJobExplorer } from './singleton-job.explorer.js';
import { InvalidLockOptionsError, LockUnavailableError } from '../../core/api/errors.js';
import type { JobRecords } from '../../core/jobs/job-records.js';
import { forMissed, type Job } from './run-job.js';

/** Watches the decorated jobs of an application once it has started. One for each lock service. */
export class WatchedJobsExplorer implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly explorer: SingletonJobExplorer,
    private readonly service: RedisLockService,
  ) {}

  onModuleInit(): void {
    const watch = partsOf(this.service)?.jobs;
    for (const { name, where, options } of this.explorer.jobs.values()) {
      checkMissedIsKept(watch, options.missed.onMissed, `The job ${quote(name)} (${where})`);
    }
  }

  onApplicationBootstrap(): void {
    const watch = partsOf(this.service)?.jobs;
    if (!watch) return;
    for (const job of this.explorer.jobs.values()) watchJob(this.service, job);
    watch.missed.start();
  }
}

/**
 * What the store of a lock service knows of jobs.
 *
 * @throws LockUnavailableError for the mock of a test
 */
export function jobRecordsOf(service: object): JobRecords {
  const watch = partsOf(service)?.jobs;
  if (watch) return watch.records;
  throw new LockUnavailableError('', 'find jobs', 'failed', new Error('this lock service is a mock'));
}

/**
 * Checks that the store remembers what a run for missed ticks needs.
 *
 * @throws InvalidLockOptionsError
 */
export function checkMissedIsKept(watch: ServiceParts['jobs'], onMissed: unknown, what: string): void {
  if (onMissed !== 'runOnce' || watch?.refusal === undefined) return;
  throw new InvalidLockOptionsError(
    `${what} has onMissed: 'runOnce', but ${watch.refusal}. Or leave onMissed out.`,
    'onMissed',
  );
}

/** Watches a job from now on, and runs it for ticks that were missed. */
export function watchJob(service: RedisLockService, job: Job): void {
  const { name, options, schedule } = job;
  const { graceMs, onMissed, missedWithinMs } = options.missed;
  // As `@nestjs/schedule` logs the errors of its jobs.
  const logger = new Logger('Scheduler');
  partsOf(service)?.jobs?.missed.add({
    job: name,
    historySize: options.history.historySize ?? 0,
    // An instance may still be waiting for its random part of spreadMs.
    graceMs: schedule ? graceMs + options.spreadMs : Infinity,
    onMissed,
    missedWithinMs,
    schedule: schedule ?? (() => undefined),
    runOwed: ({ tick }) => job.run(forMissed(service, job, tick)).catch((error: unknown) => logger.error(error)),
  });
}
