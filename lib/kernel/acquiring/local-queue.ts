import { needsPlace, refusalOf, refusedBehind, remoteFullError } from './admission.js';
import { aborted, renewedTooLate } from './acquire-errors.js';
import { AttemptLog, createOwner } from '../store/ask.js';
import { watchForDeadlock } from './deadlocks.js';
import { LocalLine } from './local-line.js';
import { askToStop, marked, refusalOfNewest } from './newest-first.js';
import { grant, type PendingCall, WaitingCalls, type WaiterListener } from './pending-call.js';
import type { PlaceReports } from './place-reports.js';
import { StoreWaiter } from './store-waiter.js';
import { followWaits, reportSlowHolder } from './why-waiting.js';
import { LockAbortedError, LockShutdownError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { PushedGrant, PushedNotice } from '../store/message-health.js';
import { passLabel, markLabelStale } from '../holding/labels.js';
import type { Runtime } from '../holding/runtime.js';
import {
  excludes,
  firstOf,
  hasLease,
  type OneOrSeveral,
  sharableWith,
  StoreLease,
  withLease,
  withoutLease,
} from '../holding/store-lease.js';

/** Nothing is added to it. */
const NO_CALLS = new WaitingCalls();

/**
 * The calls of this process that want one resource, first come, first served. Either this process holds the resource
 * and the calls wait for its release, or one waiter asks the store for the first of them. A thousand local calls
 * therefore cost Redis no more than one. If a resource can be shared, the waiter also asks while this process holds it,
 * and readers hold it side by side.
 *
 * | This process | What happens                                       | Sent                     | Then               |
 * | ------------ | -------------------------------------------------- | ------------------------ | ------------------ |
 * | has nothing  | a call joins                                       | `acquire`, by the waiter | it asks            |
 * | asks         | a call joins                                       |                          | it asks            |
 * | asks         | the waiter is granted                              |                          | it holds           |
 * | holds        | a call joins that may share what is held here      |                          | it holds           |
 * | holds        | a call joins that may share it otherwise           | `acquire`, by the waiter | it holds, and asks |
 * | holds        | a call joins where only the newest one counts      | `acquire`, by the waiter | it holds, and asks |
 * | holds        | a release; the next call may follow in memory      |                          | it holds           |
 * | holds        | a release; a call waits that may not               | `rotate`, by the waiter  | it asks            |
 * | holds        | a release before its minimum; a call waits         | `acquire`, then `retain` | it asks            |
 * | holds        | a release; no call waits here                      | `release`                | it has nothing     |
 * | holds        | a loss; a call waits                               | `acquire`, by the waiter | it asks            |
 * | holds        | a loss; no call waits                              |                          | it has nothing     |
 */
export class LocalQueue extends LocalLine implements WaiterListener {
  /** Only set while a call waits: a process may hold many resources that no call waits for. */
  #log: AttemptLog | undefined;
  protected waiting = NO_CALLS;
  protected waiter: StoreWaiter | undefined;
  declare protected placeReports?: PlaceReports | undefined;
  protected storeLeases: OneOrSeveral;

  constructor(
    readonly resource: string,
    protected readonly deps: Runtime,
    /** The queues of the process. This one deletes itself there when it holds nothing and no call waits. */
    protected readonly lines: Map<string, LocalQueue>,
  ) {
    super();
  }

  get log(): AttemptLog {
    if (this.#log !== undefined) return this.#log;
    this.#log = new AttemptLog();
    if (this.storeLeases !== undefined) this.#log.busy();
    return this.#log;
  }

  get size(): number {
    return this.waiting.size + (this.waiter ? 1 : 0);
  }

  hasGranted({ storeLease }: Hold): boolean {
    return hasLease(this.storeLeases, storeLease);
  }

  /** Grants the call at once, asks the store for it, or lets it wait for its turn. */
  join(call: PendingCall): void {
    const { signal, newest } = call.options;
    if (newest !== undefined) {
      const refusal = refusalOfNewest(call, this.deps.store);
      if (refusal !== undefined) {
        call.fail(refusal);
        return this.checkIdle();
      }
      if (newest.cancels) this.endOlderWaits();
    }
    const storeLease = this.size === 0 ? sharableWith(this.storeLeases, call.options) : undefined;
    if (storeLease) return this.grantFrom(storeLease, call);
    const isFirst = this.mayAskStore(call);
    const refusal = isFirst ? undefined : refusalOf(call, this.waiter, this, this.deps.clock);
    if (refusal !== undefined) return call.fail(refusal);
    if (signal) call.onAbort(() => this.dismiss(call, aborted(this.resource, this.endOf(call), signal)));
    if (call.options.onWait !== undefined) this.reportPlaceOf(call);
    if (isFirst) {
      const waiter = this.waiterFor(call);
      waiter.askFirst();
      // Last, because listeners of the signal may release.
      if (newest?.cancels) askToStop(this.resource, firstOf(this.storeLeases), this.deps.store.instanceId, this.deps);
      return;
    }
    if (this.waiting === NO_CALLS) this.waiting = new WaitingCalls();
    this.waiting.add(call);
    // First, because an observer may end the call.
    call.onTime((isOver) => (isOver ? this.giveUp(call) : this.waitsLong(call)));
    if (call.options.followed) followWaits(this, [call]);
    watchForDeadlock(this.resource, call, this.deps);
    // It begins to wait as it joins: reading the clock costs.
    this.reportWait(call, call.startedAt);
  }

  /** A newer call of this process cancels pending calls that are `cancellable`, then joins. */
  private endOlderWaits(): void {
    const waiter = this.waiter;
    const ended = this.calls.filter(({ options }) => options.newest?.yields);
    for (const call of ended) this.waiting.delete(call);
    if (waiter && ended.includes(waiter.call)) {
      waiter.withdraw();
      this.waiter = undefined;
      if (this.waiting.size > 0) this.goOn();
    }
    const { instanceId } = this.deps.store;
    for (const call of ended) call.fail(LockAbortedError.superseded(this.resource, instanceId, false));
  }

  /** Called when the call of the waiter has to wait, so there may be too many calls behind it. */
  private noteWait(): void {
    // A listener may have ended the call.
    if (this.waiter === undefined) return;
    for (const [call, why] of refusedBehind(this.waiter, this.waiting, this, this.deps.clock)) {
      if (call.link === undefined) continue;
      this.waiting.delete(call);
      call.fail(why);
    }
  }

  /**
   * Hands the lock over to the next local call, or releases it in the store. If another call waits and the store must
   * decide, one command does both. @returns whether the lock was still held, if the store was asked
   */
  release(hold: Hold, onHandedOver: () => void): Promise<boolean> | undefined {
    const { owner, storeLease } = hold;
    const { backgroundRelease } = hold.options;
    if (this.deps.observation.hasTracer && this.size > 0) reportSlowHolder(this.deps, hold, this.calls);
    if (storeLease.removeHolder(hold)) {
      onHandedOver();
      return undefined;
    }
    if (this.successorOf(storeLease, hold.endedAt!)) {
      onHandedOver();
      this.handOver(hold);
      return undefined;
    }
    this.storeLeases = withoutLease(this.storeLeases, storeLease);
    if (storeLease.minHoldMs > 0) {
      // The next call waits in the store, like calls of other processes. It asks before the release, which then sends
      // the waiter the time at which the resource becomes free.
      this.goOn();
      return this.deps.orphanReleases.release(storeLease, backgroundRelease);
    }
    const next = this.waiter ? undefined : this.waiting.next();
    if (next) return this.waiterFor(next).askAndRelease(owner);
    const released = this.deps.store.release(owner, backgroundRelease);
    this.checkIdle();
    return released;
  }

  /**
   * Returns the call that gets the lock if the store lease is handed over now: the first of all. If the waiter asks for
   * that one, the next call must be able to take its place in the store.
   */
  private successorOf(storeLease: StoreLease, now: number): PendingCall | undefined {
    const waiter = this.waiter;
    const next = this.waiting.first;
    const first = waiter?.call ?? next;
    if (!first || !next || storeLease.mode === 'read' || !storeLease.mayHandOverTo(first.options, now)) {
      return undefined;
    }
    return waiter && !waiter.suits(next) ? undefined : first;
  }

  /** Hands the lock over in memory, or releases it if observers made the pending calls give up. */
  private handOver(hold: Hold): void {
    const { storeLease } = hold;
    const now = this.deps.clock.now();
    const successor = this.successorOf(storeLease, now);
    if (successor) {
      const next = this.waiting.next()!;
      this.waiter?.continueFor(next);
      return this.grantFrom(storeLease, successor, now);
    }
    this.storeLeases = withoutLease(this.storeLeases, storeLease);
    this.deps.orphanReleases.start(hold.owner, hold);
    this.goOn();
  }

  lost(hold: Hold): void {
    const { storeLease } = hold;
    // It ends alone, and no caller releases it. The others keep the store lease.
    if (hold.isLeftToEnd && storeLease.removeHolder(hold)) return;
    if (storeLease.isUnconfirmed && hold.lossError().reason === 'notRenewed') {
      this.log.unanswered(renewedTooLate());
    }
    this.storeLeases = withoutLease(this.storeLeases, storeLease);
    this.goOn();
  }

  downgraded(): void {
    this.goOn();
  }

  /** Takes the grant of a message. @returns whether it is for the waiter of this queue */
  onGrant(grant: PushedGrant): boolean {
    const waiter = this.waiter;
    if (!waiter || !grant.isFor(waiter.owner.id)) return false;
    waiter.onGrant(grant.fencingToken, grant.sentAt);
    return true;
  }

  /** Takes a message with the time at which a released resource becomes free, or with a newer call that wants it. */
  onRetained({ leftMs, sentAt, by, isFor }: PushedNotice): void {
    const waiter = this.waiter;
    if (waiter && isFor(waiter.owner.id)) {
      if (by === undefined) waiter.onRetained(leftMs, sentAt);
      else if (waiter.call.options.newest?.yields) {
        this.refused(LockAbortedError.superseded(this.resource, by, false));
      }
    } else if (by !== undefined) {
      const storeLease = firstOf(this.storeLeases);
      if (storeLease && isFor(storeLease.owner.id)) askToStop(this.resource, storeLease, by, this.deps);
    }
  }

  /** Called when the connection is new: messages may have been missed, and the store may have lost its data. */
  reconnected(): void {
    this.doubt();
    this.waiter?.reconnected();
  }

  /** Fails every waiting call that `end` ends, because the application is shutting down. */
  close(end: AbortSignal): void {
    const ended = this.calls.filter((call) => this.endOf(call) === end);
    // The first one last: its place may pass to another call.
    for (const call of ended.toReversed()) this.dismiss(call, new LockShutdownError(this.resource));
    this.checkIdle();
  }

  private endOf({ isInWork }: PendingCall): AbortSignal {
    return isInWork ? this.deps.drained : this.deps.closing;
  }

  granted(fencingToken: number, sentAt: number, now: number): void {
    const { call, owner, hasChangedLabel } = this.waiter!;
    const { clock, store } = this.deps;
    this.waiter = undefined;
    this.log.busy();
    const storeLease = new StoreLease(owner, fencingToken, sentAt, call.options, clock, now);
    if (hasChangedLabel) markLabelStale(storeLease, owner.label, store, now);
    this.add(storeLease);
    grant(call, storeLease, now);
    this.goOn();
  }

  addGranted(storeLease: StoreLease): void {
    this.#log?.busy();
    this.add(storeLease);
  }

  private add(storeLease: StoreLease): void {
    this.storeLeases = withLease(this.storeLeases, storeLease);
  }

  outOfTime(): void {
    this.giveUp(this.waiter!.call);
  }

  waitsOn(now: number): void {
    const { call } = this.waiter!;
    if (this.deps.observation.hasTracer) followWaits(this, this.calls);
    watchForDeadlock(this.resource, call, this.deps);
    this.reportWait(call, now);
    this.deps.observers.onAnswer?.(this.resource, this.log.holders(now));
    this.noteWait();
    this.placeReports?.report(now);
  }

  waitsForStore(): void {
    this.reportWait(this.waiter!.call);
    this.noteWait();
  }

  full(now: number, newer?: string): void {
    const { call, place } = this.waiter!;
    const hasLostPlace = call.options.newest?.cancels && place !== undefined;
    if (newer !== undefined) this.refused(LockAbortedError.superseded(this.resource, newer, false));
    else if (hasLostPlace) this.refused(LockAbortedError.lostPlace(this.resource));
    else this.refused(remoteFullError(this, call, now));
  }

  private waiterFor(call: PendingCall): StoreWaiter {
    const { newest } = call.options;
    const owner = createOwner(this.resource, call.options, this.deps);
    call.stopWatching();
    return (this.waiter = new StoreWaiter(newest ? marked(owner, newest) : owner, call, this, this.deps));
  }

  /** Grants without a command: the call reads beside the other readers, or takes over from the holder that released. */
  private grantFrom(storeLease: StoreLease, call: PendingCall, now = this.deps.clock.now()): void {
    storeLease.mintToken();
    const { label } = call.options;
    if (label !== undefined || storeLease.label !== undefined) passLabel(storeLease, label, this.deps.store, now);
    grant(call, storeLease, now);
  }

  /** Returns true if the store can be asked for this call now, if it is the first one. */
  private mayAskStore(call: PendingCall): boolean {
    if (this.waiter) return false;
    if (!excludes(this.storeLeases, call.options)) return true;
    return needsPlace(call.options) && (this.waiting.first ?? call) === call;
  }

  private giveUp(call: PendingCall): void {
    this.dismiss(call, this.timeoutError(call));
  }

  /** Fails a call. If the waiter asks for it, the next call takes its place, even in the queue of the store. */
  private dismiss(call: PendingCall, error: Error): void {
    const waiter = this.waiter;
    if (waiter?.call !== call) {
      this.waiting.delete(call);
      call.fail(error);
      return;
    }
    const next = this.waiting.first;
    if (!next || !waiter.suits(next)) return this.refused(error);
    this.waiting.delete(next);
    waiter.continueFor(next);
    call.fail(error);
  }

  refused(error: Error): void {
    const waiter = this.waiter!;
    waiter.withdraw();
    this.waiter = undefined;
    waiter.call.fail(error);
    this.goOn();
  }

  private goOn(): void {
    for (let next = this.waiting.first; next && !this.waiter; next = this.waiting.first) {
      // Asked once only: a moment later the store lease may have reached its last token or its time.
      const storeLease = sharableWith(this.storeLeases, next.options);
      if (!storeLease && !this.mayAskStore(next)) return;
      this.waiting.delete(next);
      if (storeLease) this.grantFrom(storeLease, next);
      else this.waiterFor(next).ask();
    }
    this.checkIdle();
  }

  private checkIdle(): void {
    if (this.size > 0) return;
    if (this.storeLeases === undefined) this.lines.delete(this.resource);
    this.#log = undefined;
    this.waiting = NO_CALLS;
    if (this.placeReports === undefined) return;
    this.placeReports.stop();
    this.placeReports = undefined;
  }
}
