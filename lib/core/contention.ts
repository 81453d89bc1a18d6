import { answerWithin, type Answer } from './answer.js';
import { type Bell, Bells } from './bells.js';
import type { Clock } from './clock.js';
import { type AttemptOutcome, LockAbortedError, LockBusyError, LockShutdownError } from './errors.js';
import { LockTimeoutError, LockUnavailableError } from './errors.js';
import type { Grant } from './hold.js';
import { LocalLines, type Place } from './local-line.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { AcquireReply, LockStore, LockStoreError, Ownership } from './lock-store.js';
import { mergeSignals } from './merged-signal.js';
import { pause } from './pause.js';
import type { Random } from './random.js';
import { checkPause } from './retry.js';
import { validUntil } from './validity.js';
import type { Withdrawals } from './withdrawals.js';

/** A waiter asks again at least this often: it keeps its place alive, and finds out if a wake-up was lost. */
const HEARTBEAT_MS = 1_000;
/** First and longest pause after an attempt that Redis did not answer. */
const FAILURE_PAUSE_MS = { first: 20, longest: 500 };

/** One call to acquire, while it lasts. */
interface Contender {
  readonly ownership: Ownership;
  readonly options: ResolvedLockOptions;
  readonly startedAt: number;
  readonly giveUpAt: number;
  /** Waits in line and is woken; otherwise it asks once, or polls by the caller's strategy. */
  readonly queues: boolean;
  /** Aborts with the caller's signal or the shutdown. */
  readonly signal: AbortSignal;
  attempts: number;
  /** Failed attempts in a row. */
  failures: number;
  lastAttempt: AttemptOutcome;
  lastError: LockStoreError | undefined;
  holderTtlMs: number;
  /** Whether Redis ever said that somebody else holds it. */
  wasBusy: boolean;
  /** An attempt may have been, or may still be, executed without our knowing. */
  ambiguous: boolean;
}

/** Acquires one resource at a time from the store: attempts, waiting, and leaving nothing behind. */
export class Contention {
  readonly #lines = new LocalLines();
  readonly #bells = new Bells();

  constructor(
    private readonly store: LockStore,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly withdrawals: Withdrawals,
    /** Aborts when the application shuts down. */
    private readonly closing: AbortSignal,
  ) {
    store.onWake((resource) => this.#bells.ring(resource));
  }

  /** How many resources have local waiters. */
  get size(): number {
    return this.#lines.size;
  }

  /** @throws LockError of the kind that says why the resource was not granted */
  async acquire(resource: string, options: ResolvedLockOptions): Promise<Grant> {
    const { signal, dispose } = mergeSignals(this.closing, options.signal);
    const startedAt = this.clock.now();
    const contender: Contender = {
      ownership: { resource, owner: `${this.store.instanceId}/${this.random.id()}`, mode: options.mode },
      options,
      startedAt,
      giveUpAt: startedAt + options.waitMs,
      queues: options.waitMs > 0 && options.retry === undefined,
      signal,
      attempts: 0,
      failures: 0,
      lastAttempt: 'busy',
      lastError: undefined,
      holderTtlMs: 0,
      wasBusy: false,
      ambiguous: false,
    };
    const place = contender.queues ? this.#lines.join(resource) : undefined;
    const bell = contender.queues ? this.#bells.open(resource) : undefined;
    let grant: Grant | undefined;
    try {
      if (signal.aborted) throw this.#abortError(contender);
      if (place) await this.#waitForTurn(contender, place);
      grant = await this.#contend(contender, bell);
      return grant;
    } finally {
      bell?.close();
      const othersWait = place?.leave() ?? false;
      dispose();
      if (!grant) this.#leaveNothingBehind(contender, othersWait);
    }
  }

  async #waitForTurn(contender: Contender, place: Place): Promise<void> {
    if (place.isFirst) return;
    contender.wasBusy = true;
    const left = contender.giveUpAt - this.clock.now();
    const why = await pause(this.clock, left, contender.signal, (wake) => place.onFirst(wake));
    if (why === 'aborted') throw this.#abortError(contender);
    if (why === 'time') throw this.#timeoutError(contender);
  }

  async #contend(contender: Contender, bell: Bell | undefined): Promise<Grant> {
    for (;;) {
      bell?.reset();
      const grant = await this.#attempt(contender);
      if (grant) return grant;
      const delayMs = this.#nextPause(contender);
      const left = contender.giveUpAt - this.clock.now();
      const why = await pause(this.clock, Math.min(delayMs, left), contender.signal, bell?.listen);
      if (why === 'aborted') throw this.#abortError(contender);
      if (this.clock.now() >= contender.giveUpAt) throw this.#timeoutError(contender);
    }
  }

  /** One command. Gives nothing when the resource was not granted; what it came to is noted in the contender. */
  async #attempt(contender: Contender): Promise<Grant | undefined> {
    const { ownership, options, giveUpAt, signal } = contender;
    const sentAt = this.clock.now();
    const patience = options.waitMs === 0 ? Infinity : giveUpAt - sentAt;
    contender.attempts++;
    const answer = await answerWithin(
      this.clock,
      this.store.acquire(ownership, options.leaseMs, contender.queues),
      Math.min(options.attemptTimeoutMs, patience),
      signal,
    );
    if (answer.outcome === 'aborted') {
      contender.ambiguous = true;
      throw this.#abortError(contender);
    }
    const now = this.clock.now();
    if (answer.outcome === 'answered' && answer.value.status === 'granted') {
      if (now < validUntil(sentAt, options.leaseMs)) {
        const waitedMs = now - contender.startedAt;
        return { ownership, fencingToken: answer.value.fencingToken, sentAt, attempts: contender.attempts, waitedMs };
      }
    }
    this.#note(contender, answer, patience);
    return undefined;
  }

  #note(contender: Contender, answer: Exclude<Answer<AcquireReply>, { outcome: 'aborted' }>, patience: number): void {
    if (answer.outcome === 'answered' && answer.value.status === 'busy') {
      contender.lastAttempt = 'busy';
      contender.failures = 0;
      contender.wasBusy = true;
      contender.holderTtlMs = answer.value.ttlMs;
      return;
    }
    contender.failures++;
    if (answer.outcome === 'failed') {
      contender.lastAttempt = 'failed';
      contender.lastError = answer.error;
      if (answer.error.failure === 'unknown') contender.ambiguous = true;
      if (answer.error.failure === 'refused') throw this.#unavailableError(contender);
      return;
    }
    // No reply in time, or one that came when the lease it grants was already over.
    contender.ambiguous = true;
    const cutShort = patience < contender.options.attemptTimeoutMs;
    if (cutShort && contender.wasBusy) return;
    contender.lastAttempt = 'timeout';
    contender.lastError = answer.outcome === 'timeout' ? answer.error : undefined;
  }

  /** @throws LockError when this contender asks no more */
  #nextPause(contender: Contender): number {
    const { options, lastAttempt, holderTtlMs } = contender;
    if (options.waitMs === 0) throw this.#exhaustedError(contender);
    if (options.retry) {
      const pauseMs = checkPause(
        options.retry.next({
          attempt: contender.attempts,
          elapsedMs: this.clock.now() - contender.startedAt,
          lastAttempt,
          holderTtlMs,
          random: () => this.random.fraction(),
        }),
      );
      if (pauseMs === null) throw this.#exhaustedError(contender);
      return pauseMs;
    }
    const jitter = 1 + this.random.fraction() / 4;
    if (lastAttempt === 'busy') return Math.min(HEARTBEAT_MS, holderTtlMs + 1) * jitter;
    const doubled = FAILURE_PAUSE_MS.first * 2 ** Math.min(contender.failures - 1, 10);
    return Math.min(FAILURE_PAUSE_MS.longest, doubled) * jitter;
  }

  /** No orphan lock, and no wake-up that is meant for a waiter who has left. */
  #leaveNothingBehind(contender: Contender, othersWait: boolean): void {
    const registered = contender.queues && contender.attempts > 0;
    if (!contender.ambiguous && (!registered || othersWait)) return;
    this.withdrawals.start(contender.ownership, contender.options, !othersWait);
  }

  #abortError(contender: Contender): LockAbortedError | LockShutdownError {
    const { resource } = contender.ownership;
    if (this.closing.aborted) return new LockShutdownError(resource);
    return new LockAbortedError(resource, contender.options.signal?.reason);
  }

  /** `waitMs` is over. */
  #timeoutError(contender: Contender): LockTimeoutError | LockUnavailableError {
    if (!contender.wasBusy) return this.#unavailableError(contender);
    const waited = this.clock.now() - contender.startedAt;
    const { ownership, attempts, lastAttempt, holderTtlMs } = contender;
    return new LockTimeoutError(ownership.resource, waited, attempts, lastAttempt, holderTtlMs);
  }

  /** There is no further attempt. */
  #exhaustedError(contender: Contender): LockBusyError | LockUnavailableError {
    const { ownership, attempts, lastAttempt, holderTtlMs } = contender;
    if (lastAttempt === 'busy') return new LockBusyError(ownership.resource, attempts, holderTtlMs);
    return this.#unavailableError(contender);
  }

  #unavailableError(contender: Contender): LockUnavailableError {
    const cause = contender.lastError ?? new Error(`no usable answer in ${contender.attempts} attempts`);
    return new LockUnavailableError(contender.ownership.resource, 'acquire', contender.lastAttempt, cause);
  }
}
