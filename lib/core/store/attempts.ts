import type { AttemptOutcome } from '../api/errors.js';
import { LockStoreError } from './lock-store.js';
import { backoff, jitter } from '../util/backoff.js';
import type { Random } from '../util/random.js';

/**
 * What is known of a resource from attempts to acquire it. The calls of this process that wait for it in line share one
 * log: whichever of them asks, the answer counts for all of them. The last thing known when a wait ends is what ended
 * it.
 */
export class AttemptLog {
  /** How many were sent. */
  attempts = 0;
  /** How many in a row were not answered. */
  failures = 0;
  /** A time-out until one is answered. */
  last: AttemptOutcome = 'timeout';
  lastError: LockStoreError | undefined;
  holderTtlMs = 0;
  /** One may have been, or may still be, executed without our knowing. */
  isAmbiguous = false;
  #isConcluded = false;
  /** When the first attempt was sent since which nothing was heard. */
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

  /** No reply in time, or one that came when the lease that it grants was already over. */
  unanswered(error: LockStoreError): void {
    this.#conclude('timeout', error);
    this.failures++;
    this.isAmbiguous = true;
  }

  /** The wait has ended before an attempt had its time. */
  cutShort(now: number, attemptTimeoutMs: number): void {
    this.failures++;
    this.isAmbiguous = true;
    this.checkSilence(now, attemptTimeoutMs);
  }

  /**
   * Whether Redis has been silent for so long that this is the last thing known of it: for the time of an attempt,
   * however many calls that took. Less than that says nothing that an answer before it has not said better; and where
   * the wait has not ended, nothing at all.
   */
  checkSilence(now: number, attemptTimeoutMs: number, hasEnded = true): void {
    if (this.#silentSince === undefined || this.last === 'failed') return;
    const silentMs = now - this.#silentSince;
    if ((this.#isConcluded || !hasEnded) && (this.last === 'timeout' || silentMs < attemptTimeoutMs)) return;
    this.#conclude('timeout', new LockStoreError('unknown', `no answer within ${Math.round(silentMs)} ms`));
  }

  /**
   * What the connection says before anything is sent, where it says anything. What an attempt failed with says more.
   */
  notice(trouble: LockStoreError | undefined): void {
    if (trouble && this.last !== 'failed') this.#conclude('failed', trouble);
  }

  #conclude(last: AttemptOutcome, error: LockStoreError | undefined): void {
    this.#isConcluded = true;
    this.last = last;
    this.lastError = error;
  }
}

/** For a grant that must not be trusted. */
export function grantedTooLate(): LockStoreError {
  return new LockStoreError('unknown', 'the answer came when the lease that it grants was over');
}

/** A waiter asks again at least this often: it keeps its place alive, and finds a grant whose message was lost. */
export const HEARTBEAT_MS = 1_000;
/** First and longest pause after an attempt that Redis did not answer. */
const FAILURE_PAUSE_MS = { first: 20, longest: 500 };

/**
 * How long a waiter in the queue waits to be told before it asks again: until its place has to be renewed, or the
 * holder's lease should be over.
 */
export function heartbeatPause(holderTtlMs: number, leaseMs: number, random: Random): number {
  return Math.min(HEARTBEAT_MS, leaseMs / 3, holderTtlMs + 1) * jitter(random);
}

/** The pause after one or more attempts that were not answered. */
export function failurePause({ failures }: AttemptLog, random: Random): number {
  return backoff(FAILURE_PAUSE_MS, failures) * jitter(random);
}
