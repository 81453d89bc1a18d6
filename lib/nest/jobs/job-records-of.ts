import type { JobRecords } from '../../core/jobs/job-records.js';
import { LockUnavailableError } from '../../core/api/errors.js';

/** The key of a lock service for what its store knows of jobs. */
const RECORDS = Symbol.for('nestjs-redis-lock:job-records');

export function setJobRecords(service: object, records: JobRecords): void {
  Object.defineProperty(service, RECORDS, { value: records });
}

/** @throws LockUnavailableError for the mock of a test */
export function jobRecordsOf(service: object): JobRecords {
  const records = (service as { [RECORDS]?: JobRecords })[RECORDS];
  if (records) return records;
  const cause = new Error('this lock service is a mock');
  throw new LockUnavailableError('', 'find jobs of', 'failed', cause);
}
