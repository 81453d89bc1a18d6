import { type AttemptLog, failurePause } from '../places/attempts.js';
import { asStoreError, LockStoreError } from '../store/store-error.js';
import type { Runtime } from '../holding/runtime.js';
import type { Alarm } from '../util/alarms.js';

/**
 * Asks a store again and again until it is stopped: after a pause, whether the last attempt was answered, failed or
 * timed out. The reply to an attempt may come while a later one is under way.
 *
 * The subclass says what is sent, what a reply means, and when the alarm rings.
 */
export abstract class Asker<Reply> implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  /** The number of the last attempt. */
  #latest = 0;
  #isAsking = false;
  #isOver = false;

  protected abstract readonly deps: Pick<Runtime, 'clock' | 'random' | 'alarms'>;
  /** Of all attempts. */
  protected abstract readonly log: AttemptLog;
  protected abstract readonly attemptTimeoutMs: number;

  protected abstract send(sentAt: number): Promise<Reply>;
  protected abstract onReply(attempt: number, reply: Reply, sentAt: number): void;
  /** The store refused an attempt, and would refuse the next one. */
  protected abstract refused(): void;
  /** @param nextAt when the attempt counts as timed out, or the next one is due */
  protected abstract setAlarm(nextAt: number): void;

  /** Whether an attempt is under way that has not timed out. */
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

  /** An attempt timed out, or the next one is due. */
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
