import { type Alarm, type Alarms, alarmThat } from '../util/alarms.js';
import type { BusyFacts } from '../api/busy-errors.js';
import { type AttemptOutcome, LockUnavailableError } from '../api/errors.js';
import { aged, type Holders, NO_HOLDERS } from '../api/holder.js';
import { backoff, type Clock, jitter, type Random } from '../util/clock.js';
import { asStoreError, LockStoreError } from './store-error.js';
import type { LockDefaults, ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner, LockStore, QueuedPlace } from './lock-store.js';

/** The first and the longest pause before an unexecuted command is sent again: about the time a reconnect takes. */
const PAUSE_MS = { first: 20, longest: 200 };

/** The outcome of a command. `timeout` means unknown: it may have been executed, or may still be executed. */
export type Answer<T> = Settled<T> | { readonly outcome: 'aborted' };

export type Settled<T> =
  | { readonly outcome: 'answered'; readonly value: T }
  | { readonly outcome: 'timeout'; readonly error: LockStoreError }
  | { readonly outcome: 'failed'; readonly error: LockStoreError };

/** Waits for a command's reply, but no longer than `timeoutMs` or until the signal aborts. Never rejects. */
export function withTimeout<T>(
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const settle = (answer: Answer<T>): void => {
      alarms.cancel(alarm);
      signal?.removeEventListener('abort', abort);
      resolve(answer);
    };
    const abort = (): void => settle({ outcome: 'aborted' });
    const alarm = alarmThat(() => settle(timedOut(timeoutMs)));
    alarms.setIn(alarm, timeoutMs);
    signal?.addEventListener('abort', abort);
    command.then(
      (value) => settle({ outcome: 'answered', value }),
      (error: unknown) => settle({ outcome: 'failed', error: asStoreError(error) }),
    );
    if (signal?.aborted) abort();
  });
}

/**
 * The same, but sends the command again within `timeoutMs` while it was certainly not executed: in a failover, the old
 * primary is already a replica and the new one was not found yet. If it is not certain, the caller decides: it knows
 * what a second execution would mean. `again` returns nothing if it is no longer wanted.
 */
export function retryUnexecuted<T>(
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  again: () => Promise<T> | undefined,
  sentAt?: number,
): Promise<Settled<T>> {
  return new Promise((resolve) => {
    let trouble: LockStoreError | undefined;
    let failures = 0;
    let isOver = false;
    let next: Alarm | undefined;
    const settle = (answer: Settled<T>): void => {
      isOver = true;
      alarms.cancel(alarm);
      if (next) alarms.cancel(next);
      resolve(answer);
    };
    const alarm = alarmThat(() => settle(trouble ? { outcome: 'failed', error: trouble } : timedOut(timeoutMs)));
    const answered = (value: T): void => settle({ outcome: 'answered', value });
    const failed = (error: unknown): void => {
      if (isOver) return;
      const cause = asStoreError(error);
      if (cause.failure !== 'notExecuted') return settle({ outcome: 'failed', error: cause });
      trouble = cause;
      if (alarms.isStopped) return settle({ outcome: 'failed', error: cause });
      next ??= alarmThat(() => {
        const sent = alarms.isStopped ? undefined : again();
        if (!sent) return settle({ outcome: 'failed', error: trouble! });
        trouble = undefined;
        sent.then(answered, failed);
      });
      alarms.setIn(next, backoff(PAUSE_MS, ++failures));
    };
    alarms.setIn(alarm, timeoutMs, sentAt);
    command.then(answered, failed);
  });
}

/** Sends a command again while it is certain that it was not executed. @throws LockUnavailableError without a reply */
export async function ask<T>(
  { alarms, defaults }: { readonly alarms: Alarms; readonly defaults: Pick<LockDefaults, 'attemptTimeoutMs'> },
  send: () => Promise<T>,
  operation: string,
  resource: string,
  isWanted = () => true,
  timeoutMs = defaults.attemptTimeoutMs,
): Promise<T> {
  const answer = await retryUnexecuted(alarms, send(), timeoutMs, () => (isWanted() ? send() : undefined));
  if (answer.outcome === 'answered') return answer.value;
  throw new LockUnavailableError(resource, operation, answer.outcome, answer.error);
}

function timedOut(timeoutMs: number): { outcome: 'timeout'; error: LockStoreError } {
  return {
    outcome: 'timeout',
    error: new LockStoreError('unknown', `no answer within ${Math.round(timeoutMs)} ms`),
  };
}

/**
 * Asks a store repeatedly until it is stopped, with a pause after each attempt, whether that was answered, failed or
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
  /** Called when the store refused an attempt, and would refuse the next one. */
  protected abstract refused(): void;
  /** @param nextAt the time at which the attempt counts as timed out, or the next one is due */
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
  /** The time since which the store is known to be unreachable, so that no command can be sent. An answer resets it. */
  unreachableSince: number | undefined;
  /** The send time of the first command after the last answer. */
  #silentSince: number | undefined;

  sent(now: number): void {
    this.attempts++;
    this.asked(now);
  }

  /** Records that a command was sent that is not an attempt to acquire. */
  asked(now: number): void {
    this.#silentSince ??= now;
  }

  get holderTtlMs(): number {
    return this.#answer.ttlMs;
  }

  /** Records that another holder has the resource, or that it is not this waiter's turn. */
  busy(answer = UNHELD, seenAt = 0): void {
    this.conclude('busy', undefined);
    this.#silentSince = undefined;
    this.unreachableSince = undefined;
    this.failures = 0;
    this.#answer = answer;
    this.#seenAt = seenAt;
  }

  /** Returns the known facts about the resource, for an error. */
  facts(now?: number): BusyFacts {
    return { attempts: this.attempts, retryAfterMs: this.holderTtlMs, seen: this.holders(now) };
  }

  /** Returns the holders that the last answer named, updated to the current time. */
  holders(now = this.#seenAt): Holders {
    return aged(this.#answer.seen ?? NO_HOLDERS, now - this.#seenAt);
  }

  failed(error: LockStoreError): void {
    this.conclude('failed', error);
    this.#silentSince = undefined;
    this.failures++;
    if (error.failure === 'unknown') this.isAmbiguous = true;
  }

  /** Records that no reply came in time, or that it came after the lease that it grants had expired. */
  unanswered(error: LockStoreError): void {
    this.conclude('timeout', error);
    this.failures++;
    this.isAmbiguous = true;
  }

  /** Records that no reply came within the attempt's time: its limit, or the rest of the wait if that is shorter. */
  timedOut(error: LockStoreError, now: number, leftMs: number, attemptTimeoutMs: number): void {
    if (leftMs < attemptTimeoutMs) this.cutShort(now, attemptTimeoutMs);
    else this.unanswered(error);
  }

  /** Records that the wait ended before the attempt's time limit. The last answer explains more. */
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
    this.conclude('timeout', new LockStoreError('unknown', `no answer within ${Math.round(silentMs)} ms`));
  }

  /** Records the state of the connection. The error of a failed attempt explains more, and stays. */
  notice(trouble: LockStoreError | undefined): void {
    if (trouble && this.last !== 'failed') this.conclude('failed', trouble);
  }

  /** @returns whether the store has just become unreachable */
  markUnreachable(isAway: boolean, now: number): boolean {
    const isNew = isAway && this.unreachableSince === undefined;
    this.unreachableSince = isAway ? (this.unreachableSince ?? now) : undefined;
    return isNew;
  }

  private conclude(last: AttemptOutcome, error: LockStoreError | undefined): void {
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

/** Each command sends the owner id. 72 bits cannot be guessed within a lease, not even from the seals of messages. */
const SECRET_BYTES = 9;

/**
 * A new owner id. It begins with the client: operators see which process holds the lock, and grants reach it. The rest
 * is secret: a process that knows the whole id can renew and release the lock.
 */
export function createOwnerId(clientId: string, random: Random): string {
  // One flat string: a template would keep its parts, and take twice as much memory for each lease.
  return [clientId, random.id(SECRET_BYTES)].join('/');
}

export function createOwner(
  resource: string,
  { mode, permits, label }: Pick<ResolvedLockOptions, 'mode' | 'permits' | 'label'>,
  { store, random }: { readonly store: LockStore; readonly random: Random },
): LockOwner {
  const id = createOwnerId(store.clientId, random);
  return label === undefined ? { resource, id, mode, permits } : { resource, id, mode, permits, label };
}

export function instanceOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.indexOf('/'));
}

export function clientOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf('/'));
}
