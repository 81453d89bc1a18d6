import { answerWithin } from './answer.js';
import { AttemptLog } from './attempt-log.js';
import { type Bell, Bells } from './bells.js';
import type { Clock } from './clock.js';
import {
  LockAbortedError,
  LockBusyError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from './errors.js';
import type { Grant } from './hold.js';
import { LocalLines, type Place } from './local-line.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { LockStore, Ownership } from './lock-store.js';
import { mergeSignals } from './merged-signal.js';
import { createOwnerId } from './owner-id.js';
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
  /** Its place, if it waits in line and is woken; otherwise it asks once, or polls by the caller's strategy. */
  readonly place: Place | undefined;
  /** Aborts with the caller's signal or the shutdown. */
  readonly signal: AbortSignal;
  readonly log: AttemptLog;
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
    const queues = options.waitMs > 0 && options.retry === undefined;
    const contender: Contender = {
      ownership: { resource, owner: createOwnerId(this.store.instanceId, this.random), mode: options.mode },
      options,
      startedAt,
      giveUpAt: startedAt + options.waitMs,
      place: queues ? this.#lines.join(resource) : undefined,
      signal,
      log: new AttemptLog(),
    };
    const bell = queues ? this.#bells.open(resource) : undefined;
    let grant: Grant | undefined;
    try {
      if (signal.aborted) throw this.#abortError(contender);
      await this.#waitForTurn(contender);
      grant = await this.#contend(contender, bell);
      return grant;
    } finally {
      bell?.close();
      const othersWait = contender.place?.leave() ?? false;
      dispose();
      if (!grant) this.#leaveNothingBehind(contender, othersWait);
    }
  }

  async #waitForTurn(contender: Contender): Promise<void> {
    const { place } = contender;
    if (!place || place.isFirst) return;
    const left = contender.giveUpAt - this.clock.now();
    const why = await pause(this.clock, left, contender.signal, (wake) => place.onFirst(wake));
    if (why === 'aborted') throw this.#abortError(contender);
    if (place.latest) contender.log.inherit(place.latest);
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

  /** One command. Gives nothing when the resource was not granted; what it came to is noted in the contender's log. */
  async #attempt(contender: Contender): Promise<Grant | undefined> {
    const { ownership, options, giveUpAt, signal, place, log } = contender;
    const sentAt = this.clock.now();
    const patience = options.waitMs === 0 ? Infinity : giveUpAt - sentAt;
    log.attempts++;
    if (place) place.latest = log;
    const command = this.store.acquire(ownership, options.leaseMs, place !== undefined);
    const answer = await answerWithin(this.clock, command, Math.min(options.attemptTimeoutMs, patience), signal);
    if (answer.outcome === 'aborted' || answer.outcome === 'timeout') {
      this.withdrawals.refuseLateGrant(command, ownership, options);
    }
    if (answer.outcome === 'aborted') {
      log.isAmbiguous = true;
      throw this.#abortError(contender);
    }
    const now = this.clock.now();
    if (answer.outcome === 'failed') {
      log.failed(answer.error);
      if (answer.error.failure === 'refused') throw this.#unavailableError(contender);
    } else if (answer.outcome === 'timeout') {
      log.unanswered(answer.error, patience < options.attemptTimeoutMs);
    } else if (answer.value.status === 'busy') {
      log.busy(answer.value.ttlMs);
    } else if (now < validUntil(sentAt, options.leaseMs)) {
      log.granted();
      const { fencingToken } = answer.value;
      return { ownership, fencingToken, sentAt, attempts: log.attempts, waitedMs: now - contender.startedAt };
    } else {
      log.unanswered(undefined, false);
    }
    return undefined;
  }

  /** @throws LockError when this contender asks no more */
  #nextPause(contender: Contender): number {
    const { options, log } = contender;
    if (options.waitMs === 0) throw this.#exhaustedError(contender);
    if (options.retry) {
      const pauseMs = checkPause(
        options.retry.next({
          attempt: log.attempts,
          elapsedMs: this.clock.now() - contender.startedAt,
          lastAttempt: log.last,
          holderTtlMs: log.holderTtlMs,
          random: () => this.random.fraction(),
        }),
      );
      if (pauseMs === null) throw this.#exhaustedError(contender);
      return pauseMs;
    }
    const jitter = 1 + this.random.fraction() / 4;
    if (log.last === 'busy') return Math.min(HEARTBEAT_MS, log.holderTtlMs + 1) * jitter;
    const doubled = FAILURE_PAUSE_MS.first * 2 ** Math.min(log.failures - 1, 10);
    return Math.min(FAILURE_PAUSE_MS.longest, doubled) * jitter;
  }

  /** No orphan lock, and no wake-up that is meant for a waiter who has left. */
  #leaveNothingBehind({ ownership, options, place, log }: Contender, othersWait: boolean): void {
    const leaveQueue = !othersWait && place?.latest !== undefined;
    if (log.isAmbiguous || leaveQueue) this.withdrawals.start(ownership, options, leaveQueue);
  }

  #abortError(contender: Contender): LockAbortedError | LockShutdownError {
    const { resource } = contender.ownership;
    if (this.closing.aborted) return new LockShutdownError(resource);
    return new LockAbortedError(resource, contender.options.signal?.reason);
  }

  /** `waitMs` is over. */
  #timeoutError(contender: Contender): LockTimeoutError | LockUnavailableError {
    const { ownership, startedAt, log } = contender;
    if (!log.wasBusy) return this.#unavailableError(contender);
    const waitedMs = this.clock.now() - startedAt;
    return new LockTimeoutError(ownership.resource, waitedMs, log.attempts, log.last, log.holderTtlMs);
  }

  /** There is no further attempt. */
  #exhaustedError(contender: Contender): LockBusyError | LockUnavailableError {
    const { ownership, log } = contender;
    if (log.last === 'busy') return new LockBusyError(ownership.resource, log.attempts, log.holderTtlMs);
    return this.#unavailableError(contender);
  }

  #unavailableError({ ownership, log }: Contender): LockUnavailableError {
    const cause = log.lastError ?? new Error(`no usable answer in ${log.attempts} attempts`);
    return new LockUnavailableError(ownership.resource, 'acquire', log.last, cause);
  }
}
