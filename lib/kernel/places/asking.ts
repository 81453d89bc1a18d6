import type { BusyFacts } from '../api/busy-errors.js';
import type { AttemptOutcome } from '../api/errors.js';
import { aged, type Holders, NO_HOLDERS } from '../api/holder.js';
import { asStoreError, LockStoreError } from '../store/store-error.js';
import type { QueuedPlace } from '../store/lock-store.js';
import type { Alarm, Alarms } from '../util/alarms.js';
import { backoff, type Clock, jitter, type Random } from '../util/clock.js';

/**
 * Asks a store again and again until it is stopped: after a pause, whether the last attempt was answered, failed or
 * timed out. The reply to an attempt may come while a later one is under way.
 *
 * The subclass defines the command, handles the reply, and sets the alarm.
 */
export abstract class Asker<Reply> implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  #latest = 0;
  #isAsking = false;
  #isOver = false;

  protected abstract readonly deps: { readonly clock: Clock; readonly random: Random; readonly alarms: Alarms };
  protected abstract readonly log: AttemptLog;
  protected abstract readonly attemptTimeoutMs: number;

  protected abstract send(sentAt: number): Promise<Reply>;
  protected abstract onReply(attempt: number, reply: Reply, sentAt: number): void;
  /** The store refused an attempt, and would refuse the next one. */
  protected abstract refused(): void;
  /** @param nextAt when the attempt counts as timed out, or the next one is due */
  protected abstract setAlarm(nextAt: number): void;

  /** `true` while an attempt is under way that has not timed out. */
  protected get isAsking(): boolean {
    return this.#isAsking;
  }

  protected get isOver(): boolean {
    return this.#isOver;
  }

  protected isLatest(attempt: number): boolean {
    return attempt === this.#latest;
  }

  /** @param now the time, if the caller knows it: reading the clock costs */
  ask(now = this.deps.clock.now()): void {
    const attempt = this.begin(now);
    const answer = this.send(now);
    this.awaitAnswer(now);
    answer.then(
      (reply) => this.onReply(attempt, reply, now),
      (error: unknown) => this.onError(attempt, asStoreError(error)),
    );
  }

  ring(): void {
    if (!this.#isAsking) return this.ask();
    this.unanswered(new LockStoreError('unknown', `no answer within ${this.attemptTimeoutMs} ms`));
  }

  /** Call this before an attempt is sent: what observes the command may end the wait. @returns the number of the attempt */
  protected begin(sentAt: number): number {
    this.log.sent(sentAt);
    this.#isAsking = true;
    return ++this.#latest;
  }

  /** Call this after an attempt was sent. Its alarm costs the most, and the store is at work by now. */
  protected awaitAnswer(sentAt: number): void {
    if (!this.#isOver) this.setAlarm(sentAt + this.attemptTimeoutMs);
  }

  protected onError(attempt: number, error: LockStoreError): void {
    if (this.#isOver || !this.isLatest(attempt)) return;
    this.log.failed(error);
    if (error.failure === 'refused') this.refused();
    else this.askAfterFailure();
  }

  protected unanswered(error: LockStoreError): void {
    this.log.unanswered(error);
    this.askAfterFailure();
  }

  protected askAfterFailure(): void {
    this.askLater(failurePause(this.log, this.deps.random));
  }

  protected askLater(pauseMs: number, now = this.deps.clock.now()): void {
    this.#isAsking = false;
    this.setAlarm(now + pauseMs);
  }

  protected stop(): void {
    this.#isOver = true;
    this.deps.alarms.cancel(this);
  }
}

/** The holders in a reply. Few replies are asked for them, so a store may build `seen` only then. */
interface BusyAnswer {
  readonly ttlMs: number;
  readonly seen?: Holders | undefined;
}

const UNHELD: BusyAnswer = { ttlMs: 0 };

/**
 * The outcomes of attempts to acquire a resource. All calls of this process that wait for it in one queue share one
 * log: an answer to one of them counts for all. The last entry when a wait ends is the reason why it ended.
 */
export class AttemptLog {
  attempts = 0;
  /** In a row. */
  failures = 0;
  /** Counts as a time-out until an attempt is answered. */
  last: AttemptOutcome = 'timeout';
  lastError: LockStoreError | undefined;
  #answer: BusyAnswer = UNHELD;
  #seenAt = 0;
  /** `true` if an attempt without an answer may have been executed, or may still be. */
  isAmbiguous = false;
  #isConcluded = false;
  /** Since when the store is known to be away: no command can be sent there. An answer ends that. */
  unreachableSince: number | undefined;
  /** The send time of the first command after the last answer. */
  #silentSince: number | undefined;

  sent(now: number): void {
    this.attempts++;
    this.asked(now);
  }

  /** A command was sent that is no attempt to acquire. */
  asked(now: number): void {
    this.#silentSince ??= now;
  }

  get holderTtlMs(): number {
    return this.#answer.ttlMs;
  }

  /** Another holder has it, or it is not this waiter's turn. */
  busy(answer = UNHELD, seenAt = 0): void {
    this.#conclude('busy', undefined);
    this.#silentSince = undefined;
    this.unreachableSince = undefined;
    this.failures = 0;
    this.#answer = answer;
    this.#seenAt = seenAt;
  }

  /** What is known of the resource, for an error. */
  facts(now?: number): BusyFacts {
    return { attempts: this.attempts, retryAfterMs: this.holderTtlMs, seen: this.holders(now) };
  }

  /** The holders that the last answer named, as they should be by now. */
  holders(now = this.#seenAt): Holders {
    return aged(this.#answer.seen ?? NO_HOLDERS, now - this.#seenAt);
  }

  failed(error: LockStoreError): void {
    this.#conclude('failed', error);
    this.#silentSince = undefined;
    this.failures++;
    if (error.failure === 'unknown') this.isAmbiguous = true;
  }

  /** Records that no reply came in time, or that it came after the lease that it grants had expired. */
  unanswered(error: LockStoreError): void {
    this.#conclude('timeout', error);
    this.failures++;
    this.isAmbiguous = true;
  }

  /** Records that no reply came within the attempt's time: its limit, or the rest of the wait if that is shorter. */
  timedOut(error: LockStoreError, now: number, leftMs: number, attemptTimeoutMs: number): void {
    if (leftMs < attemptTimeoutMs) this.cutShort(now, attemptTimeoutMs);
    else this.unanswered(error);
  }

  /** The wait ended before the attempt's time limit. The last answer explains more. */
  cutShort(now: number, attemptTimeoutMs: number): void {
    this.failures++;
    this.isAmbiguous = true;
    this.checkSilence(now, attemptTimeoutMs);
  }

  /**
   * Records a time-out if Redis has been silent for the time limit of one attempt, over any number of calls. A shorter
   * silence counts only if the wait has ended without any answer: otherwise the last answer explains more.
   *
   * @param unansweredSince the send time of the oldest probe that Redis has not answered
   */
  checkSilence(now: number, attemptTimeoutMs: number, hasEnded = true, unansweredSince = Infinity): void {
    if (this.last === 'failed') return;
    // An answer that came after the probe was sent may have been given after it.
    const silentMs = now - Math.min(this.#silentSince ?? Infinity, Math.max(unansweredSince, this.#seenAt));
    if (silentMs === -Infinity) return;
    if ((this.#isConcluded || !hasEnded) && (this.last === 'timeout' || silentMs < attemptTimeoutMs)) return;
    this.#conclude('timeout', new LockStoreError('unknown', `no answer within ${Math.round(silentMs)} ms`));
  }

  /** Records the state of the connection. The error of a failed attempt explains more, and stays. */
  notice(trouble: LockStoreError | undefined): void {
    if (trouble && this.last !== 'failed') this.#conclude('failed', trouble);
  }

  /** @returns whether the store has just become unreachable */
  markUnreachable(isAway: boolean, now: number): boolean {
    const isNew = isAway && this.unreachableSince === undefined;
    this.unreachableSince = isAway ? (this.unreachableSince ?? now) : undefined;
    return isNew;
  }

  #conclude(last: AttemptOutcome, error: LockStoreError | undefined): void {
    this.#isConcluded = true;
    this.last = last;
    this.lastError = error;
  }
}

export interface WaitingTimes {
  readonly waitMs: number;
  readonly unavailableMs: number;
}

export function givesUpAt(
  startedAt: number,
  { waitMs, unavailableMs }: WaitingTimes,
  unreachableSince: number | undefined,
): number {
  const endsAt = startedAt + waitMs;
  return unreachableSince === undefined
    ? endsAt
    : Math.min(endsAt, Math.max(startedAt, unreachableSince) + unavailableMs);
}

export function grantedTooLate(): LockStoreError {
  return new LockStoreError('unknown', 'the answer came after the lease that it granted had ended');
}

/**
 * If messages may be lost, a waiter asks again at least this often: that keeps its place alive, and finds a grant whose
 * message was lost.
 */
export const HEARTBEAT_MS = 1_000;
/** The interval between the checks of a queue's waiters for a holder that is gone. */
const LOOK_APART_MS = 10;
/** The first and the longest pause after an attempt that Redis did not answer. */
const FAILURE_PAUSE_MS = { first: 20, longest: 500 };

/**
 * Returns the time that a waiter waits for a message before it asks again, if nothing else keeps its place: until the
 * place must be renewed, or until the holder's lease should have ended.
 */
export function heartbeatPause(holderTtlMs: number, leaseMs: number, random: Random): number {
  return Math.min(HEARTBEAT_MS, leaseMs / 3, holderTtlMs + 1) * jitter(random);
}

/**
 * Returns the time before a queued waiter checks whether the resource is free without a message: until the holder's
 * lease has ended, or a place that another waiter may have been granted with. Waiters further back check later, because
 * one before them may have been granted by then.
 */
export function lookPause({ ttlMs, soonestMs = Infinity, place = 1 }: QueuedPlace, random: Random): number {
  return Math.min(ttlMs, soonestMs) + (1 + Math.max(0, place - 1) * LOOK_APART_MS) * jitter(random);
}

export function failurePause({ failures }: Pick<AttemptLog, 'failures'>, random: Random): number {
  return backoff(FAILURE_PAUSE_MS, failures) * jitter(random);
}
