import type { AttemptLog } from './attempt-log.js';
import {
  LockAbortedError,
  LockBusyError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from './errors.js';

/** `waitMs` is over. */
export function waitedTooLong(
  resource: string,
  waitedMs: number,
  log: AttemptLog,
): LockTimeoutError | LockUnavailableError {
  if (!log.wasBusy) return unavailable(resource, log);
  return new LockTimeoutError(resource, waitedMs, log.attempts, log.last, log.holderTtlMs);
}

/** There is no further attempt. */
export function exhausted(resource: string, log: AttemptLog): LockBusyError | LockUnavailableError {
  if (log.last === 'busy') return new LockBusyError(resource, log.attempts, log.holderTtlMs);
  return unavailable(resource, log);
}

export function unavailable(resource: string, log: AttemptLog): LockUnavailableError {
  const cause = log.lastError ?? new Error(`no usable answer in ${log.attempts} attempts`);
  return new LockUnavailableError(resource, 'acquire', log.last, cause);
}

/** The caller gave up, or the application shuts down. */
export function aborted(
  resource: string,
  closing: AbortSignal,
  signal: AbortSignal | undefined,
): LockAbortedError | LockShutdownError {
  return closing.aborted ? new LockShutdownError(resource) : new LockAbortedError(resource, signal?.reason);
}
