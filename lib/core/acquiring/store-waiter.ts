import type { Alarm } from '../util/alarms.js';
import { failurePause, heartbeatPause, type AttemptLog, grantedTooLate } from '../store/attempts.js';
import type { PendingCall } from './pending-call.js';
import {
  type AcquireReply,
  asStoreError,
  type FoundInUse,
  LockStoreError,
  type LockOwner,
} from '../store/lock-store.js';
import { isSameRequest } from '../api/lock-options.js';
import type { Runtime } from '../store/runtime.js';
import { validUntil } from '../holding/store-lease.js';

/** The queue that a waiter asks for. */
export interface WaiterListener {
  /** What this waiter and those before it have found out. */
  readonly log: AttemptLog;
  granted(fencingToken: number, sentAt: number, now: number): void;
  /** The time of its call is over. */
  outOfTime(): void;
  /** The queue of the store is full. */
  full(): void;
  /** The resource is in use as something else. */
  mismatched(found: FoundInUse): void;
  /** The store will never grant it. */
  refused(): void;
  /** Whether this process holds the lock of this owner. */
  holds(owner: LockOwner): boolean;
}

/**
 * Waits for a resource in the store, for the first call of a local queue. It asks again and again until it is granted:
 * that keeps its place in the queue of the store, and finds a grant whose message was lost. If its call gives up, it
 * can go on for the next call.
 */
export class StoreWaiter implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  /** The lock to release in the same step, until that has been answered. */
  #toRelease: LockOwner | undefined;
  /** The number of the last attempt. */
  #latest = 0;
  #isAsking = false;
  /** How many attempts may have been executed. */
  #outstanding = 0;
  /** How many may still be executed, as far as this process knows. */
  #unsettled = 0;
  /** The largest token that a message has named. */
  #heardToken = 0;
  /** When the attempt counts as timed out, or the next one is due. */
  #nextAt = Infinity;
  #isOver = false;

  constructor(
    readonly owner: LockOwner,
    public call: PendingCall,
    private readonly queue: WaiterListener,
    private readonly deps: Runtime,
  ) {}

  /**
   * Asks for the first time, and releases a lock of this process in the same step. @returns whether that was still held
   */
  askAndRelease(held: LockOwner): Promise<boolean> {
    this.#toRelease = held;
    return this.#rotate(held);
  }

  /** @param now the time, if the caller knows it: reading the clock costs */
  ask(now?: number): void {
    if (this.#toRelease) {
      this.#rotate(this.#toRelease).catch(() => {}); // reported by the attempt
      return;
    }
    const { call, owner, deps } = this;
    const { attempt, queueing } = this.#begin(now);
    deps.store.acquire(owner, call.options.leaseMs, queueing).then(
      (reply) => this.#onReply(attempt, queueing.sentAt, reply),
      (error: unknown) => this.#onError(attempt, asStoreError(error)),
    );
  }

  #rotate(held: LockOwner): Promise<boolean> {
    const { call, owner, deps } = this;
    const { attempt, queueing } = this.#begin();
    return deps.store.rotate(held, owner, call.options.leaseMs, queueing).then(
      ({ released, next }) => {
        this.#toRelease = undefined;
        if (next instanceof LockStoreError) this.#onError(attempt, next);
        else this.#onReply(attempt, queueing.sentAt, next);
        return released;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        // The holder sends its release again.
        if (cause.failure === 'notExecuted') this.#toRelease = undefined;
        this.#onError(attempt, cause);
        throw cause;
      },
    );
  }

  /** Whether more than one attempt was sent that may be executed. */
  get hasAskedAgain(): boolean {
    return this.#outstanding > 1;
  }

  /** Whether it can go on for this call in place of its own. */
  suits({ options }: PendingCall): boolean {
    const { mode, permits } = this.owner;
    return (
      options.mode === mode && isSameRequest(options.permits, permits) && options.leaseMs === this.call.options.leaseMs
    );
  }

  /** From now on it asks for this call. */
  continueFor(next: PendingCall): void {
    next.stopWatching();
    this.call = next;
    this.#setAlarm(this.#nextAt);
  }

  /** A message says that it was granted. A message that comes twice is heeded once. */
  onGrant(fencingToken: number, sentAt: number): void {
    if (fencingToken <= this.#heardToken) return;
    this.#heardToken = fencingToken;
    const { leaseMs, watchdog } = this.call.options;
    const now = this.deps.clock.now();
    // A fixed lease should last as long as the caller asked for, and a lease that is nearly over should begin anew.
    // Another acquire does both, because the store already has this waiter as the holder.
    const isEnough = watchdog && sentAt <= now && validUntil(sentAt, leaseMs) - now > leaseMs / 2;
    if (isEnough) this.#conclude(fencingToken, sentAt, now);
    else this.ask();
  }

  /** Stops asking. What the store may still grant is released. */
  withdraw(): void {
    this.#stop();
    if (this.#outstanding > 0) this.deps.orphanReleases.start(this.owner, this.call.options);
  }

  /** An attempt timed out, the next one is due, or the call's time is over. */
  ring(): void {
    const { call, deps } = this;
    const now = deps.clock.now();
    const isDue = now >= this.#nextAt;
    if (this.#isAsking) {
      const { attemptTimeoutMs } = call.options;
      if (isDue) this.#unanswered(new LockStoreError('unknown', `no answer within ${attemptTimeoutMs} ms`));
      else this.#cutShort(now, attemptTimeoutMs);
    } else if (isDue && now < call.giveUpAt) this.ask();
    if (now >= call.giveUpAt) this.queue.outOfTime();
  }

  #stop(): void {
    const { alarms, orphanReleases } = this.deps;
    this.#isOver = true;
    alarms.cancel(this);
    if (this.#unsettled > 0) orphanReleases.expectLate(this.owner, this.call.options, this.#unsettled);
  }

  /** It is known of one more attempt that it was executed, or never will be. */
  #settle(): void {
    this.#unsettled--;
    if (this.#isOver) this.deps.orphanReleases.answered(this.owner);
  }

  #conclude(fencingToken: number, sentAt: number, now: number): void {
    this.#stop();
    this.queue.granted(fencingToken, sentAt, now);
  }

  #begin(sentAt = this.deps.clock.now()) {
    const { options } = this.call;
    this.call.attempts++;
    this.queue.log.sent(sentAt);
    this.#isAsking = true;
    this.#outstanding++;
    this.#unsettled++;
    this.#setAlarm(sentAt + options.attemptTimeoutMs);
    return { attempt: ++this.#latest, queueing: { sentAt, maxWaiters: options.maxWaiters } };
  }

  #onReply(attempt: number, sentAt: number, reply: AcquireReply): void {
    const { call, deps } = this;
    this.#settle();
    if (this.#isOver) {
      // It may have been executed after the release, for example because Redis did not know the script and it was sent
      // again.
      const isKnown = reply.status === 'granted' || reply.status === 'queued';
      if (isKnown && !this.queue.holds(this.owner)) deps.orphanReleases.start(this.owner, call.options);
      return;
    }
    if (reply.status === 'granted') {
      const { leaseMs } = call.options;
      const now = deps.clock.now();
      if (now < validUntil(sentAt, leaseMs)) this.#conclude(reply.fencingToken, sentAt, now);
      else if (attempt === this.#latest) this.#unanswered(grantedTooLate());
      return;
    }
    this.queue.log.busy(reply.ttlMs);
    const isOutside = reply.status === 'full' || reply.status === 'mismatch';
    if (isOutside) this.#outstanding--;
    if (attempt !== this.#latest) return;
    this.#isAsking = false;
    if (reply.status === 'full') this.queue.full();
    else if (reply.status === 'mismatch') this.queue.mismatched(reply.found);
    else this.#askLater(heartbeatPause(reply.ttlMs, call.options.leaseMs, deps.random));
  }

  #onError(attempt: number, error: LockStoreError): void {
    if (error.failure !== 'unknown') {
      this.#outstanding--;
      this.#settle();
    }
    if (this.#isOver || attempt !== this.#latest) return;
    this.#isAsking = false;
    this.queue.log.failed(error);
    if (error.failure === 'refused') this.queue.refused();
    else this.#askLater(failurePause(this.queue.log, this.deps.random));
  }

  #unanswered(error: LockStoreError): void {
    this.queue.log.unanswered(error);
    this.#isAsking = false;
    this.#askLater(failurePause(this.queue.log, this.deps.random));
  }

  /** The time of its call is over while it asks. It may go on for another call. */
  #cutShort(now: number, attemptTimeoutMs: number): void {
    this.queue.log.cutShort(now, attemptTimeoutMs);
    this.#isAsking = false;
    this.#askLater(failurePause(this.queue.log, this.deps.random));
  }

  #askLater(pauseMs: number): void {
    this.#setAlarm(this.deps.clock.now() + pauseMs);
  }

  #setAlarm(nextAt: number): void {
    this.#nextAt = nextAt;
    this.deps.alarms.set(this, Math.min(nextAt, this.call.giveUpAt));
  }
}
