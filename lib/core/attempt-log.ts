import type { AttemptOutcome } from './errors.js';
import type { LockStoreError } from './lock-store.js';

/** What the attempts of one call to acquire came to. */
export class AttemptLog {
  /** How many were sent. */
  attempts = 0;
  /** How many in a row were not answered. */
  failures = 0;
  /** A time-out until one is answered. */
  last: AttemptOutcome = 'timeout';
  lastError: LockStoreError | undefined;
  holderTtlMs = 0;
  /** Whether Redis ever said that somebody else holds it. */
  wasBusy = false;
  /** One may have been, or may still be, executed without our knowing. */
  isAmbiguous = false;
  #isConcluded = false;

  /** Starts from what the one before in line found out. */
  inherit(log: AttemptLog): void {
    const { last, lastError, holderTtlMs } = log;
    Object.assign(this, { last, lastError, holderTtlMs, wasBusy: last === 'busy' });
    this.#isConcluded = log.#isConcluded;
  }

  /** It waited until now for a holder of this process: the resource was busy, whatever Redis has no time to say. */
  stoodBehindHolder(): void {
    this.#conclude('busy', undefined);
  }

  busy(holderTtlMs: number): void {
    this.#conclude('busy', undefined);
    this.failures = 0;
    this.wasBusy = true;
    this.holderTtlMs = holderTtlMs;
  }

  failed(error: LockStoreError): void {
    this.#conclude('failed', error);
    this.failures++;
    if (error.failure === 'unknown') this.isAmbiguous = true;
  }

  /**
   * No reply in time, or one that came when the lease it grants was already over. `cutShort`: it had less time than an
   * attempt should have, because the wait was ending, and says nothing that an attempt before it has not said better.
   */
  unanswered(error: LockStoreError | undefined, cutShort: boolean): void {
    this.failures++;
    this.isAmbiguous = true;
    if (!cutShort || !this.#isConcluded) this.#conclude('timeout', error);
  }

  #conclude(last: AttemptOutcome, error: LockStoreError | undefined): void {
    this.#isConcluded = true;
    this.last = last;
    this.lastError = error;
  }
}
