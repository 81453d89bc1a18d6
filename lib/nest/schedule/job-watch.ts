import { Logger } from '@nestjs/common';
import { InvalidLockOptionsError, LockUnavailableError } from '../../core/api/errors.js';
import type { JobRecords } from '../../core/jobs/job-records.js';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import type { OwedRun } from '../../core/store/job-store.js';
import { type JobWatch, partsOf } from '../service-parts.js';
import type { ResolvedJobOptions } from './singleton-options.js';

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
export function checkMissedIsKept(watch: JobWatch | undefined, onMissed: unknown, what: string): void {
  if (onMissed !== 'runOnce' || watch?.refusal === undefined) return;
  throw new InvalidLockOptionsError(
    `${what} has onMissed: 'runOnce', but ${watch.refusal}. Or leave onMissed out.`,
    'onMissed',
  );
}

/** A job of this process, and how it is run for ticks that were missed. */
export interface JobToWatch {
  readonly name: string;
  readonly options: ResolvedJobOptions;
  /** When its ticks are due, as it is scheduled at the moment. Not set for jobs whose ticks have no order. */
  readonly schedule: (() => TickSchedule | undefined) | undefined;
  readonly runOwed: (owed: OwedRun) => Promise<unknown>;
}

/** Watches a job from now on. */
export function watchJob({ missed }: JobWatch, { name, options, schedule, runOwed }: JobToWatch): void {
  const { graceMs, onMissed, missedWithinMs } = options.missed;
  // As `@nestjs/schedule` logs the errors of its jobs.
  const logger = new Logger('Scheduler');
  missed.add({
    job: name,
    historySize: options.history.historySize ?? 0,
    // An instance may still be waiting for its random part of spreadMs.
    graceMs: schedule ? graceMs + options.spreadMs : Infinity,
    onMissed,
    missedWithinMs,
    schedule: schedule ?? (() => undefined),
    runOwed: (owed) => runOwed(owed).catch((error: unknown) => logger.error(error)),
  });
}
