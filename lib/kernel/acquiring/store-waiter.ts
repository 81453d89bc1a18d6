import { Asker, type AttemptLog, grantedTooLate, heartbeatPause, lookPause } from '../store/ask.js';
import { mismatched, unavailable } from './acquire-errors.js';
import { ageOf } from './newest-first.js';
import { NEWS_MS, type PendingCall, type WaiterListener } from './pending-call.js';
import type { AcquireReply, LockOwner, QueuedPlace, Queueing } from '../store/lock-store.js';
import { asStoreError, LockStoreError } from '../store/store-error.js';
import { isSameRequest } from '../api/lock-options.js';
import { isExpectedToWait, reportsWaits } from './waits.js';
import { jitter } from '../util/clock.js';
import type { Place, QueuedWaiter } from '../places/place.js';
import type { Runtime } from '../holding/runtime.js';
import { validUntil } from '../holding/store-lease.js';

/**
 * Waits for a resource in the store, for the first call of a local queue. It asks until it is in the queue of the
 * store, and again when the resource may be free. In between, its place is kept together with others; if the store
 * cannot do that, it asks every second. If its call gives up, it can serve the next call.
 *
 * | State   | What happens                                       | Sent         | Then                          |
 * | ------- | -------------------------------------------------- | ------------ | ----------------------------- |
 * | asking  | answer: it has a place, and the store keeps places |              | kept                          |
 * | asking  | answer: another holder has it                      |              | resting, for a second at most |
 * | asking  | no answer in time, or a failure                    |              | resting, for a pause          |
 * | asking  | answer: full, in use otherwise, or refused         |              | over; its call fails          |
 * | kept    | the place is due                                   | `keepPlaces` | kept                          |
 * | kept    | answer: the place is gone, or the resource is free | `acquire`    | asking                        |
 * | kept    | the time at which a message announced it as free   | `acquire`    | asking                        |
 * | resting | the pause has ended, or the connection is new      | `acquire`    | asking                        |
 * | any     | a grant, by an answer or a message                 |              | over; the queue has it        |
 * | any     | a message of a grant whose lease has to be renewed | `acquire`    | asking                        |
 * | any     | its call gives up, and the next one fits           |              | the same, for that one        |
 * | any     | its call gives up, and none fits                   | `release`    | over                          |
 */
export class StoreWaiter extends Asker<AcquireReply> implements QueuedWaiter {
  /** The lock to release in the same step, until that has been answered. */
  #toRelease: LockOwner | undefined;
  /** The number of attempts that may have been executed. */
  #outstanding = 0;
  /** The number of attempts that may still be executed, as far as this process knows. */
  #unsettled = 0;
  /** The largest token that a message has named. */
  #heardToken = 0;
  #nextAt = Infinity;
  /** The call that joined an empty queue and asks, until a reply makes it wait. */
  declare firstCall?: PendingCall | undefined;
  /** `true` if calls behind its own have to be checked once its place is known. */
  declare isAwaited?: boolean;
  /** `true` if the store may grant it with the label of another call. Only set if labels were given. */
  declare hasChangedLabel?: true;
  /** `true` if the attempt under way has the label of another call. Only set if labels were given. */
  declare isLabelOld?: boolean;
  /** The last known place in the queue of the store. Only set once it has to wait there. */
  place: number | undefined;
  /** The holder that was notified of this newer call, and the time of the first message. */
  declare asked?: { readonly fencingToken: number | undefined; readonly at: number } | undefined;
  /** The send time of the last command whose reply had a place in the queue. */
  #placedSentAt = -1;
  /** The time at which the resource becomes free, from a message. */
  #notice: { readonly freeAt: number; readonly sentAt: number } | undefined;
  kept: Place | undefined;
  lossesBefore = 0;

  constructor(
    public owner: LockOwner,
    public call: PendingCall,
    private readonly queue: WaiterListener,
    protected readonly deps: Runtime,
  ) {
    super();
  }

  get log(): AttemptLog {
    return this.queue.log;
  }

  newsDueAt(now: number): number {
    const { owner, deps } = this;
    if (this.queue.reportsPlaces) return now + NEWS_MS;
    // Its waits are counted for the holders in each reply.
    if (deps.observers.onAnswer !== undefined && !isExpectedToWait(owner.resource)) return now + NEWS_MS;
    const isLongWaitTold = reportsWaits(owner.resource) && deps.observers.wants('waitingLong');
    return this.call.newsDueAt(now, isLongWaitTold, this.attemptTimeoutMs);
  }

  protected get attemptTimeoutMs(): number {
    return this.call.options.attemptTimeoutMs;
  }

  /** Asks for the first time, and releases a lock of this process with it. @returns whether that was still held */
  askAndRelease(held: LockOwner): Promise<boolean> {
    this.#toRelease = held;
    return this.rotate(held);
  }

  /** Asks for a call that joined an empty queue. It may find the resource free, so it does not count as waiting yet. */
  askFirst(): void {
    const { call } = this;
    this.firstCall = call;
    if (call.options.maxAhead !== undefined) call.isUnplaced = true;
    this.ask(call.startedAt);
  }

  override ask(now?: number): void {
    if (!this.#toRelease) return super.ask(now);
    this.rotate(this.#toRelease).catch(() => {}); // reported by the attempt
  }

  protected send(sentAt: number): Promise<AcquireReply> {
    const { several, options } = this.call;
    const { leaseMs } = options;
    const queueing = this.queueing(sentAt);
    if (several !== undefined) return several.acquire(this.owner, leaseMs, sentAt, queueing);
    return this.deps.store.acquire(this.owner, leaseMs, queueing);
  }

  private queueing(sentAt: number): Queueing {
    const { call, place } = this;
    const { newest, maxAhead = Infinity } = call.options;
    let { maxWaiters } = call.options;
    // One that has a place may lose it, and joins again whatever its place is then.
    if (call.isUnplaced) maxWaiters = Math.min(maxWaiters, maxAhead + 1);
    if (!newest?.cancels) return { sentAt, maxWaiters };
    // It joins once: its place decides which call is newer.
    return { sentAt, maxWaiters: place === undefined ? maxWaiters : 0, age: ageOf(call, sentAt) };
  }

  private rotate(held: LockOwner): Promise<boolean> {
    const { owner, deps } = this;
    const sentAt = deps.clock.now();
    const attempt = this.begin(sentAt);
    const answer = deps.store.rotate(held, owner, this.call.options.leaseMs, this.queueing(sentAt));
    this.awaitAnswer(sentAt);
    return answer.then(
      ({ released, next }) => {
        this.#toRelease = undefined;
        if (next instanceof LockStoreError) this.onError(attempt, next);
        else this.onReply(attempt, next, sentAt);
        return released;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        // The holder sends its release again.
        if (cause.failure === 'notExecuted') this.#toRelease = undefined;
        this.onError(attempt, cause);
        throw cause;
      },
    );
  }

  /** Returns true if this waiter can serve `call` instead of its own. */
  suits({ options }: PendingCall): boolean {
    const { mode, permits } = this.owner;
    return (
      options.newest === undefined &&
      this.call.options.newest === undefined &&
      options.mode === mode &&
      isSameRequest(options.permits, permits) &&
      options.leaseMs === this.call.options.leaseMs
    );
  }

  continueFor(next: PendingCall): void {
    next.stopWatching();
    this.call = next;
    const { places } = this.deps;
    places.hasten(this, this.deps.clock.now());
    const { label } = next.options;
    if (label === this.owner.label) return this.setAlarm(this.#nextAt);
    this.owner = { ...this.owner, label };
    this.hasChangedLabel = true;
    // The place in the queue still shows the other call, until the next attempt.
    places.pause(this);
    this.isLabelOld = this.isAsking;
    this.setAlarm(this.isAsking ? this.#nextAt : this.deps.clock.now());
  }

  /** A duplicate changes nothing. */
  onGrant(fencingToken: number, sentAt: number): void {
    this.deps.observers.answered();
    if (fencingToken <= this.#heardToken) return;
    this.#heardToken = fencingToken;
    const { leaseMs, watchdog } = this.call.options;
    const now = this.deps.clock.now();
    // A fixed lease should have its full length, and a lease near its end should be renewed. Another acquire does both,
    // because the store already has this waiter as the holder.
    const isEnough = watchdog && sentAt <= now && validUntil(sentAt, leaseMs) - now > leaseMs / 2;
    if (isEnough) this.conclude(fencingToken, sentAt, now);
    else this.ask();
  }

  onRetained(leftMs: number, sentAt: number): void {
    const freeAt = this.deps.clock.now() + leftMs + 1;
    const known = this.#notice;
    const isRepeated = sentAt === known?.sentAt && freeAt >= known.freeAt;
    // The message has the stamp of the last command, or of a pending one, so a copy of an older message changes nothing.
    if (sentAt >= Math.floor(this.#placedSentAt) && !isRepeated) this.#notice = { freeAt, sentAt };
    if (!this.isAsking && this.freeAt < this.#nextAt) this.setAlarm(this.freeAt);
  }

  /** The announced time, once the store has answered the command that the message belongs to; otherwise `Infinity`. */
  private get freeAt(): number {
    return this.#notice && this.#notice.sentAt <= this.#placedSentAt ? this.#notice.freeAt : Infinity;
  }

  /** Messages may have been missed. */
  reconnected(): void {
    if (!this.deps.places.keeps(this)) this.ask();
  }

  /** Stops asking, and releases late grants. */
  withdraw(): void {
    this.stop();
    if (this.#outstanding > 0) this.deps.orphanReleases.start(this.owner, this.call.options);
  }

  onStoreUnreachable(): void {
    this.setAlarm(this.#nextAt);
  }

  notKept(): void {
    this.queue.checkReachable();
  }

  /** Called when an attempt timed out, the next one is due, or the call timed out. */
  override ring(): void {
    const now = this.deps.clock.now();
    const { call } = this;
    // The store may have recovered.
    if (this.log.unreachableSince !== undefined) this.queue.checkReachable();
    const isOutOfTime = now >= call.giveUpAt;
    if (now < this.#nextAt) {
      if (!isOutOfTime) this.setAlarm(this.#nextAt);
      else if (this.isAsking) this.cutShort(now);
    } else if (this.isAsking || !isOutOfTime) super.ring();
    // An observer may just have ended the call. Then the waiter serves another one, or has ended.
    if (isOutOfTime && !this.isOver && call === this.call) this.queue.outOfTime();
  }

  protected override begin(sentAt: number): number {
    this.call.attempts++;
    this.#outstanding++;
    this.#unsettled++;
    const { places } = this.deps;
    this.lossesBefore = places.losses;
    // The attempt keeps its place, too.
    if (this.kept) places.pause(this);
    if (this.isLabelOld) this.isLabelOld = false;
    return super.begin(sentAt);
  }

  protected onReply(attempt: number, reply: AcquireReply, sentAt: number): void {
    const { call, deps } = this;
    deps.observers.answered();
    this.settle();
    if (this.isOver) {
      // It may have been executed after the release, for example because Redis did not know the script and it was sent
      // again.
      const isKnown = reply.status === 'granted' || reply.status === 'queued';
      if (isKnown && !this.queue.holds(this.owner)) deps.orphanReleases.start(this.owner, call.options);
      return;
    }
    if (reply.status === 'granted') {
      const { leaseMs } = call.options;
      const now = deps.clock.now();
      if (now < validUntil(sentAt, leaseMs)) this.conclude(reply.fencingToken, sentAt, now);
      else if (this.isLatest(attempt)) this.unanswered(grantedTooLate());
      return;
    }
    const now = deps.clock.now();
    const isMismatch = reply.status === 'mismatch';
    this.log.busy(reply, now);
    if (isMismatch || reply.status === 'full') this.#outstanding--;
    if (!this.isLatest(attempt)) return;
    if (reply.status === 'full') this.queue.full(now, reply.newer);
    else if (isMismatch) this.queue.refused(mismatched(this.owner.resource, call.options, reply.found));
    else this.waitOn(reply, reply.status === 'queued', sentAt, now);
  }

  onKept(reply: QueuedPlace, sentAt: number, now: number): void {
    this.deps.observers.answered();
    this.log.busy(reply, now);
    this.waitOn(reply, true, sentAt, now);
  }

  private waitOn(reply: QueuedPlace, isQueued: boolean, sentAt: number, now: number): void {
    const { places, random } = this.deps;
    const { place, ttlMs } = reply;
    if (place !== undefined) this.place = place;
    const { newest } = this.call.options;
    if (newest?.cancels) this.noteAsked(reply, now);
    // One that cancels older calls asks every second, to notify calls that have joined the queue before it since then.
    const isKept = isQueued && !newest?.cancels && places.keep(this, sentAt, now, now + lookPause(reply, random));
    const restMs = isKept ? Infinity : heartbeatPause(ttlMs, this.call.options.leaseMs, random);
    // Only an attempt changes the label of a place or continues a search that the store stopped at its bound.
    const pauseMs = this.isLabelOld ? 0 : isKept && ttlMs <= 1 ? jitter(random) : restMs;
    this.#placedSentAt = sentAt;
    // The store received the stamp after it sent the message, so this answer is newer.
    if (this.#notice && this.#notice.sentAt < Math.floor(sentAt)) this.#notice = undefined;
    // 0 if it may be free by now: the store may have executed the command before the holder released, though the message
    // about that has overtaken the answer.
    const freeInMs = this.freeAt > sentAt ? Math.max(0, this.freeAt - now) : Infinity;
    this.askLater(Math.min(pauseMs, freeInMs), now);
    this.queue.waitsOn(now);
  }

  private noteAsked({ told, seen }: QueuedPlace, now: number): void {
    const holder = told === undefined ? undefined : seen?.holders[0];
    if (!holder) return void (this.asked = undefined);
    const { fencingToken, instanceId, isThisProcess } = holder;
    if (this.asked?.fencingToken === fencingToken) return;
    this.asked = { fencingToken, at: now };
    const { observers, store } = this.deps;
    // A holder in this process reports it itself.
    if (isThisProcess || !observers.wants('superseded')) return;
    const call = observers.describeCall(this.owner.resource, this.call.options);
    observers.emit({ type: 'superseded', ...call, fencingToken, holder: instanceId, by: store.instanceId });
  }

  protected override onError(attempt: number, error: LockStoreError): void {
    if (error.failure !== 'unknown') {
      this.#outstanding--;
      this.settle();
    }
    super.onError(attempt, error);
  }

  protected refused(): void {
    this.queue.refused(unavailable(this.owner.resource, this.log));
  }

  protected setAlarm(nextAt: number): void {
    this.#nextAt = nextAt;
    this.deps.alarms.set(this, Math.min(nextAt, this.call.giveUpAt));
  }

  protected override stop(): void {
    super.stop();
    if (this.kept) this.deps.places.leave(this);
    if (this.#unsettled > 0) this.deps.orphanReleases.late.expect(this.owner, this.call.options, this.#unsettled);
  }

  private settle(): void {
    this.#unsettled--;
    if (this.isOver) this.deps.orphanReleases.late.answered(this.owner);
  }

  private conclude(fencingToken: number, sentAt: number, now: number): void {
    this.stop();
    this.queue.granted(fencingToken, sentAt, now);
  }

  protected override askAfterFailure(): void {
    this.queue.checkReachable();
    super.askAfterFailure();
    this.queue.waitsForStore();
  }

  /** Called when its call times out while it asks. It may then serve another call. */
  private cutShort(now: number): void {
    this.log.cutShort(now, this.attemptTimeoutMs);
    super.askAfterFailure();
  }
}
