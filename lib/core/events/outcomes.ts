import { LockError } from '../api/errors.js';

/** What became of a call to acquire. `refused`: it cannot be granted, however long it waits. */
export type AcquireOutcome =
  'acquired' | 'busy' | 'timeout' | 'queue_full' | 'aborted' | 'unavailable' | 'shutdown' | 'refused';

const BY_CODE: Readonly<Record<string, AcquireOutcome>> = {
  LOCK_BUSY: 'busy',
  LOCK_TIMEOUT: 'timeout',
  LOCK_QUEUE_FULL: 'queue_full',
  LOCK_ABORTED: 'aborted',
  LOCK_UNAVAILABLE: 'unavailable',
  LOCK_SHUTDOWN: 'shutdown',
};

/** The codes of the errors that have an outcome of their own. */
export const CODES_WITH_OUTCOME: readonly string[] = Object.keys(BY_CODE);

/** What became of a call that failed with an error of this code. */
export function outcomeOfCode(code: string): AcquireOutcome {
  return BY_CODE[code] ?? 'refused';
}

/** What became of a call that failed with this error. */
export function outcomeOfError(error: unknown): AcquireOutcome {
  return error instanceof LockError ? outcomeOfCode(error.code) : 'refused';
}
