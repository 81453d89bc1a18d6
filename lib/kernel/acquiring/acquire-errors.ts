import type { AttemptLog, WaitingTimes } from '../store/ask.js';
import {
  LockAbortedError,
  LockModeMismatchError,
  LockShutdownError,
  LockUnavailableError,
  quoteResource,
} from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { ModeConflict } from '../store/lock-store.js';
import { formatDuration } from '../util/durations.js';
import { LockStoreError } from '../store/store-error.js';
import { noteWait, waitBefore } from './waits.js';
import { type BusyFacts, LockBusyError, LockTimeoutError, type WaitFacts } from '../api/busy-errors.js';

/** Blames the last known cause: another holder has the resource, or Redis could not be asked. */
export function waitedTooLong(
  resource: string,
  call: { readonly startedAt: number; readonly options: WaitingTimes },
  now: number,
  log: AttemptLog,
  attempts = log.attempts,
  details?: Omit<WaitFacts, 'waitedMs' | keyof BusyFacts>,
): LockUnavailableError | LockTimeoutError {
  if (log.last !== 'busy') return unavailable(resource, log, 'acquire', waitedForStore(call, now));
  return new LockTimeoutError(resource, { ...log.facts(now), attempts, waitedMs: now - call.startedAt, ...details });
}

/**
 * Throws the error of a call for several resources whose earlier waits left too little time for this one. It blames the
 * holders of the earlier resources, not a Redis that has just answered, and has the wait of the whole call.
 */
export function cutShort(error: unknown, part: ResolvedLockOptions, requested: ResolvedLockOptions): never {
  const hadNoTime = error instanceof LockUnavailableError && attemptWasCutShort(error, part);
  const isTimeout = error instanceof LockTimeoutError;
  if (part.waitMs === 0 || !(hadNoTime || isTimeout)) throw error;
  const { waitMs: waitedMs } = requested;
  const { resource } = error;
  const known = isTimeout ? factsOf(error) : { attempts: 1, retryAfterMs: 0 };
  // It may be free: nothing is known of it.
  const outOfTime = `${quoteResource(resource)} was not acquired: the time of this call (waitMs, ${formatDuration(waitedMs)}) was over before Redis answered for this resource. Raise waitMs, or acquire fewer resources in one call.`;
  const message = isTimeout ? undefined : outOfTime;
  const late = new LockTimeoutError(resource, { ...known, waitedMs }, message);
  const wait = waitBefore(error);
  if (wait) noteWait(late, wait.since, wait.hasWaited);
  throw late;
}

function factsOf(error: LockTimeoutError): Omit<WaitFacts, 'waitedMs'> {
  const { attempts, retryAfterMs, place, heldByCaller, cancelRequestedMsAgo } = error;
  return { attempts, retryAfterMs, seen: error, place, heldByCaller, cancelRequestedMsAgo };
}

/**
 * Returns true if the call gave up before the attempt's time limit: a Redis that is only slow would have answered
 * later.
 */
export function attemptWasCutShort(
  { lastAttempt }: LockUnavailableError,
  { waitMs, attemptTimeoutMs }: Pick<ResolvedLockOptions, 'waitMs' | 'attemptTimeoutMs'>,
): boolean {
  return lastAttempt === 'timeout' && waitMs !== 0 && waitMs < attemptTimeoutMs;
}

export function exhausted(resource: string, log: AttemptLog): LockBusyError | LockUnavailableError {
  if (log.last === 'busy') return new LockBusyError(resource, log.facts());
  return unavailable(resource, log);
}

/** Returns the time for which the call waited for an unreachable store, if that ended the wait before `waitMs`. */
export function waitedForStore(
  { startedAt, options }: { readonly startedAt: number; readonly options: WaitingTimes },
  now: number,
): number | undefined {
  return now < startedAt + options.waitMs ? options.unavailableMs : undefined;
}

/** @param unavailableMs set if the call gave up early because the store is unreachable */
export function unavailable(
  resource: string,
  log: AttemptLog,
  operation = 'acquire',
  unavailableMs?: number,
): LockUnavailableError {
  const cause = log.lastError ?? new LockStoreError('unknown', 'Redis has not answered yet');
  return new LockUnavailableError(resource, operation, log.last, cause, unavailableMs);
}

/** The error of a wait for a lease of this process, which ended because nothing renewed it in time. */
export function renewedTooLate(): LockStoreError {
  return new LockStoreError(
    'unknown',
    'this process held the resource, but Redis confirmed no renewal of that lease in time',
  );
}

export function aborted(
  resource: string,
  closing: AbortSignal,
  signal: AbortSignal | undefined,
): LockShutdownError | LockAbortedError {
  return closing.aborted ? new LockShutdownError(resource) : new LockAbortedError(resource, signal?.reason);
}

export function nullIfBusy(error: unknown): null {
  if (error instanceof LockBusyError) return null;
  throw error;
}

/**
 * Returns the error of a call that uses the resource differently from its holders: as a lock and not as a semaphore,
 * for example.
 */
export function mismatched(
  resource: string,
  { mode, permits }: Pick<ResolvedLockOptions, 'mode' | 'permits'>,
  found: ModeConflict,
): LockModeMismatchError {
  const name = quoteResource(resource);
  return new LockModeMismatchError(explain(), resource);

  function explain(): string {
    if (!permits) {
      return (
        `${name} is in use as a semaphore with ${found.total} permits, and this call wants to lock it ` +
        `(mode ${mode}). Give one of the two another name.`
      );
    }
    if (found.mode !== 'semaphore') {
      return (
        `${name} is locked (mode ${found.mode}), and this call uses it as a semaphore. ` +
        `Give one of the two another name.`
      );
    }
    if (permits.count > found.total) {
      return (
        `${name} has ${found.total} permits since it was resized, and this call wants ${permits.count} of them ` +
        `at once, which could never be granted. Ask for fewer, or resize the semaphore.`
      );
    }
    return (
      `${name} is in use as a semaphore with ${found.total} permits, and this call sets ${permits.total}. ` +
      `Use the same number everywhere, or call resize(${permits.total}) on the semaphore.`
    );
  }
}
