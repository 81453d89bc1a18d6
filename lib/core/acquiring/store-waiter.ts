import type { Alarm, Alarms } from '../util/alarms.js';
import { failurePause, heartbeatPause, type AttemptLog, grantedTooLate } from '../store/attempts.js';
import type { PendingCall } from './pending-call.js';
import type { Clock } from '../util/clock.js';
import {
  type AcquireReply,
  asStoreError,
  type FoundInUse,
  type LockStore,
  LockStoreError,
  type LockOwner,
} from '../store/lock-store.js';
import { isSameRequest } from '../api/lock-options.js';
import type { Random } from '../util/random.js';
import { validUntil } from '../store/validity.js';
import type { OrphanReleases } from '../store/orphan-releases.js';

export interface StoreWaiterDeps {
  readonly store: LockStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly alarms: Alarms;
  readonly orphanReleases: OrphanReleases;
}

/** What a contender tells the line it asks for. */
export interface ContenderListener {
  /** What it and those before it have found out. */
  readonly log: AttemptLog;
  granted(fencingToken: number, sentAt: number, now: number): void;
  /** Its call's time is over. */
  outOfTime(): void;
  /** The queue of the store takes nobody any more. */
  full(): void;
  /** The resource is in use as something else. */
  mismatched(found: FoundInUse): void;
  /** The store will never do it. */
  refused(): void;
  /** Whether the lock of this owner is held here. */
  holds(ownership: LockOwner): boolean;
}

/**
 * The one who contends for a resource in the store, for the first in a local line. It asks until it is granted, again and
 * again while it stands in the queue: that keeps its place, and finds a grant whose message was lost. The call it asks for
 * may give up and leave it to the next one in line.
 */
export class StoreWaiter implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  /** The lock to hand back in the same step; until that has been answered. */
  #leaving: LockOwner | undefined;
  /** The number of the last attempt. */
  #latest = 0;
  #isAsking = false;
  /** How many attempts may have been executed. */
  #outstanding = 0;
  /** How many may still be executed, as far as is known here. */
  #unsettled = 0;
  /** The largest token that a message has named. */
  #heardToken = 0;
  /** When the attempt counts as timed out, or the next one is due. */
  #nextAt = Infinity;
  #isOver = false;

  constructor(
    readonly ownership: LockOwner,
    public call: PendingCall,
    private readonly line: ContenderListener,
    private readonly deps: StoreWaiterDeps,
  ) {}

  /** Asks for the first time, and hands another lock of this process back with it. Says whether that was still held. */
  askInPlaceOf(leaving: LockOwner): Promise<boolean> {
    this.#leaving = leaving;
    return this.#rotate(leaving);
  }

  /** @param now the time, where it is known: each look at the clock costs */
  ask(now?: number): void {
    if (this.#leaving) {
      this.#rotate(this.#leaving).catch(() => {}); // reported by the attempt
      return;
    }
    const { call, ownership, deps } = this;
    const { attempt, queueing } = this.#begin(now);
    deps.store.acquire(ownership, call.options.leaseMs, queueing).then(
      (reply) => this.#onReply(attempt, queueing.sentAt, reply),
      (error: unknown) => this.#onError(attempt, asStoreError(error)),
    );
  }

  #rotate(leaving: LockOwner): Promise<boolean> {
    const { call, ownership, deps } = this;
    const { attempt, queueing } = this.#begin();
    return deps.store.rotate(leaving, ownership, call.options.leaseMs, queueing).then(
      ({ released, next }) => {
        this.#leaving = undefined;
        if (next instanceof LockStoreError) this.#onError(attempt, next);
        else this.#onReply(attempt, queueing.sentAt, next);
        return released;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        // Who releases sees to it that the lock is given back.
        if (cause.failure === 'notExecuted') this.#leaving = undefined;
        this.#onError(attempt, cause);
        throw cause;
      },
    );
  }

  /** Whether more than one attempt was sent that may be executed. */
  get hasAskedAgain(): boolean {
    return this.#outstanding > 1;
  }

  /** Whether another call may take the place of its own. */
  suits({ options }: PendingCall): boolean {
    const { mode, permits } = this.ownership;
    return (
      options.mode === mode && isSameRequest(options.permits, permits) && options.leaseMs === this.call.options.leaseMs
    );
  }

  /** It asks for another call from now on. */
  passTo(heir: PendingCall): void {
    heir.stopWatching();
    this.call = heir;
    this.#setAlarm(this.#nextAt);
  }

  /** A message says that it was granted. One that comes again, whoever has sent it, says nothing new. */
  hear(fencingToken: number, sentAt: number): void {
    if (fencingToken <= this.#heardToken) return;
    this.#heardToken = fencingToken;
    const { leaseMs, watchdog } = this.call.options;
    const now = this.deps.clock.now();
    // A fixed lease should be as long as was asked for; one that is nearly over should begin anew. It is this contender's in
    // the store, so another acquire does both.
    const isEnough = watchdog && sentAt <= now && validUntil(sentAt, leaseMs) - now > leaseMs / 2;
    if (isEnough) this.#conclude(fencingToken, sentAt, now);
    else this.ask();
  }

  /** It asks no more. What the store may still grant it is given back. */
  withdraw(): void {
    this.#stop();
    if (this.#outstanding > 0) this.deps.orphanReleases.start(this.ownership, this.call.options);
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
    if (now >= call.giveUpAt) this.line.outOfTime();
  }

  #stop(): void {
    const { alarms, orphanReleases } = this.deps;
    this.#isOver = true;
    alarms.cancel(this);
    if (this.#unsettled > 0) orphanReleases.expectLate(this.ownership, this.call.options, this.#unsettled);
  }

  /** An attempt has been executed, or never will be. */
  #settle(): void {
    this.#unsettled--;
    if (this.#isOver) this.deps.orphanReleases.answered(this.ownership);
  }

  #conclude(fencingToken: number, sentAt: number, now: number): void {
    this.#stop();
    this.line.granted(fencingToken, sentAt, now);
  }

  #begin(sentAt = this.deps.clock.now()) {
    const { options } = this.call;
    this.call.attempts++;
    this.line.log.sent(sentAt);
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
      // It may have been executed after the withdrawal, or the release, as when a script that Redis did not know was sent anew.
      const isKnown = reply.status === 'granted' || reply.status === 'queued';
      if (isKnown && !this.line.holds(this.ownership)) deps.orphanReleases.start(this.ownership, call.options);
      return;
    }
    if (reply.status === 'granted') {
      const { leaseMs } = call.options;
      const now = deps.clock.now();
      if (now < validUntil(sentAt, leaseMs)) this.#conclude(reply.fencingToken, sentAt, now);
      else if (attempt === this.#latest) this.#unanswered(grantedTooLate());
      return;
    }
    this.line.log.busy(reply.ttlMs);
    const isOutside = reply.status === 'full' || reply.status === 'mismatch';
    if (isOutside) this.#outstanding--;
    if (attempt !== this.#latest) return;
    this.#isAsking = false;
    if (reply.status === 'full') this.line.full();
    else if (reply.status === 'mismatch') this.line.mismatched(reply.found);
    else this.#askLater(heartbeatPause(reply.ttlMs, call.options.leaseMs, deps.random));
  }

  #onError(attempt: number, error: LockStoreError): void {
    if (error.failure !== 'unknown') {
      this.#outstanding--;
      this.#settle();
    }
    if (this.#isOver || attempt !== this.#latest) return;
    this.#isAsking = false;
    this.line.log.failed(error);
    if (error.failure === 'refused') this.line.refused();
    else this.#askLater(failurePause(this.line.log, this.deps.random));
  }

  #unanswered(error: LockStoreError): void {
    this.line.log.unanswered(error);
    this.#isAsking = false;
    this.#askLater(failurePause(this.line.log, this.deps.random));
  }

  /** The time of its call is over while it asks. Another call may go on with it. */
  #cutShort(now: number, attemptTimeoutMs: number): void {
    this.line.log.cutShort(now, attemptTimeoutMs);
    this.#isAsking = false;
    this.#askLater(failurePause(this.line.log, this.deps.random));
  }

  #askLater(pauseMs: number): void {
    this.#setAlarm(this.deps.clock.now() + pauseMs);
  }

  #setAlarm(nextAt: number): void {
    this.#nextAt = nextAt;
    this.deps.alarms.set(this, Math.min(nextAt, this.call.giveUpAt));
  }
}
