import type { AttemptOutcome } from '../api/errors.js';
import { LockStoreError } from './lock-store.js';
import { backoff, jitter } from '../util/backoff.js';
import type { Random } from '../util/random.js';

/**
 * What attempts to acquire a resource have shown. All calls of this process that wait for it in one queue share one
 * log: an answer to one of them counts for all. The last entry when a wait ends is the reason why it ended.
 */
export class AttemptLog {
  /** How many were sent. */
  attempts = 0;
  /** How many in a row were not answered. */
  failures = 0;
  /** Counts as a time-out until an attempt is answered. */
  last: AttemptOutcome = 'timeout';
  lastError: LockStoreError | undefined;
  holderTtlMs = 0;
  /** Whether an attempt may have been executed, or may still be, without an answer. */
  isAmbiguous = false;
  #isConcluded = false;
  /** When the first attempt after the last answer was sent. */
  #silentSince: number | undefined;

  sent(now: number): void {
    this.attempts++;
    this.#silentSince ??= now;
  }

  /** Another holder has it, or it is not this waiter's turn. */
  busy(holderTtlMs: number): void {
    this.#conclude('busy', undefined);
    this.#silentSince = undefined;
    this.failures = 0;
    this.holderTtlMs = holderTtlMs;
  }

  failed(error: LockStoreError): void {
    this.#conclude('failed', error);
    this.#silentSince = undefined;
    this.failures++;
    if (error.failure === 'unknown') this.isAmbiguous = true;
  }

  /** No reply came in time, or it came after the lease that it grants was over. */
  unanswered(error: LockStoreError): void {
    this.#conclude('timeout', error);
    this.failures++;
    this.isAmbiguous = true;
  }

  /** The wait ended before the attempt's time limit. */
  cutShort(now: number, attemptTimeoutMs: number): void {
    this.failures++;
    this.isAmbiguous = true;
    this.checkSilence(now, attemptTimeoutMs);
  }

  /**
   * Records a time-out if Redis has been silent for the time limit of one attempt, over any number of calls. A shorter
   * silence counts only if the wait has ended without any answer: otherwise the last answer says more.
   */
  checkSilence(now: number, attemptTimeoutMs: number, hasEnded = true): void {
    if (this.#silentSince === undefined || this.last === 'failed') return;
    const silentMs = now - this.#silentSince;
    if ((this.#isConcluded || !hasEnded) && (this.last === 'timeout' || silentMs < attemptTimeoutMs)) return;
    this.#conclude('timeout', new LockStoreError('unknown', `no answer within ${Math.round(silentMs)} ms`));
  }

  /** Records what the connection knows without a command. The error of a failed attempt says more, and stays. */
  notice(trouble: LockStoreError | undefined): void {
    if (trouble && this.last !== 'failed') this.#conclude('failed', trouble);
  }

  #conclude(last: AttemptOutcome, error: LockStoreError | undefined): void {
    this.#isConcluded = true;
    this.last = last;
    this.lastError = error;
  }
}

/** The error of a grant that came too late to be trusted. */
export function grantedTooLate(): LockStoreError {
  return new LockStoreError('unknown', 'the answer came after the lease that it granted had ended');
}

/** A waiter asks again at least this often: that keeps its place alive, and finds a grant if its message was lost. */
export const HEARTBEAT_MS = 1_000;
/** The first and the longest pause after an attempt that Redis did not answer. */
const FAILURE_PAUSE_MS = { first: 20, longest: 500 };

/**
 * How long a waiter in the queue waits for a message before it asks again: until its place must be renewed, or until
 * the holder's lease should be over.
 */
export function heartbeatPause(holderTtlMs: number, leaseMs: number, random: Random): number {
  return Math.min(HEARTBEAT_MS, leaseMs / 3, holderTtlMs + 1) * jitter(random);
}

/** The pause after one or more attempts that were not answered. */
export function failurePause({ failures }: AttemptLog, random: Random): number {
  return backoff(FAILURE_PAUSE_MS, failures) * jitter(random);
}
