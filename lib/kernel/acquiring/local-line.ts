import type { Holders } from '../api/holder.js';
import type { Runtime } from '../holding/runtime.js';
import { allOf, firstOf, holderOf, isHeldBy, type LocalHolder, type OneOrSeveral } from '../holding/store-lease.js';
import type { AttemptLog } from '../store/ask.js';
import type { LockOwner } from '../store/lock-store.js';
import { waitedTooLong } from './acquire-errors.js';
import { asksFirst } from './admission.js';
import { heldByCaller } from './deadlocks.js';
import { askedToStopAt } from './newest-first.js';
import type { PendingCall, WaitingCalls } from './pending-call.js';
import { PlaceReports } from './place-reports.js';
import type { StoreWaiter } from './store-waiter.js';
import { holdersNow, noteReasons, type QueueFacts, type ReportedWait, reportWait } from './why-waiting.js';

/** What this process knows, and reports, of the calls that wait for one resource. A call that is granted at once needs none. */
export abstract class LocalLine implements ReportedWait {
  abstract readonly resource: string;
  abstract readonly log: AttemptLog;
  protected abstract readonly deps: Runtime;
  protected abstract readonly lines: ReadonlyMap<string, LocalLine>;
  /** The calls that wait here, without the call that the waiter asks for. */
  protected abstract readonly waiting: WaitingCalls;
  protected abstract readonly waiter: StoreWaiter | undefined;
  protected abstract readonly storeLeases: OneOrSeveral;
  /** Only set while a call with `onWait` may wait. */
  protected abstract placeReports?: PlaceReports | undefined;

  /** First come, first served. */
  get calls(): PendingCall[] {
    return [...(this.waiter ? [this.waiter.call] : []), ...this.waiting.all];
  }

  get firstWaiting(): PendingCall | undefined {
    return this.waiter?.call ?? this.waiting.first;
  }

  /** The place of the first of its {@link calls} in the store's queue, if the waiter asks for that one. */
  get placeOfFirst(): number | undefined {
    return this.waiter?.place;
  }

  /** `true` if the store has not answered the first of its {@link calls}, or not the last time. */
  get isUndecided(): boolean {
    return this.waiter !== undefined && (asksFirst(this.waiter) || this.log.last !== 'busy');
  }

  /** Returns the holder of the lease with this token in this process, or of one that counts up from it. */
  holderOf(fencingToken: number): LocalHolder | undefined {
    return holderOf(this.storeLeases, fencingToken);
  }

  holds(owner: LockOwner): boolean {
    return isHeldBy(this.storeLeases, owner);
  }

  doubt(): void {
    for (const storeLease of allOf(this.storeLeases)) storeLease.isInDoubt = true;
  }

  checkReachable(): void {
    const { store, clock } = this.deps;
    // While this process holds the resource, the calls do not wait for the store.
    const isAway = this.waiter !== undefined && store.trouble(this.resource) !== undefined;
    if (!this.log.markUnreachable(isAway, clock.now())) return;
    this.waiter!.onStoreUnreachable();
    for (const call of this.waiting.all) call.onStoreUnreachable();
  }

  get facts(): QueueFacts {
    const { resource, log, deps } = this;
    return { resource, store: deps.store, log, ownLease: this.waiter ? undefined : firstOf(this.storeLeases) };
  }

  holders(now: number): Holders {
    return holdersNow(this.facts, now);
  }

  get reportsPlaces(): boolean {
    return this.placeReports?.isNeeded === true;
  }

  protected reportPlaceOf(call: PendingCall): void {
    this.placeReports ??= new PlaceReports(this, this.deps);
    this.placeReports.add(call);
    // The place that is known may be a keep old.
    if (this.waiter) this.deps.places.hasten(this.waiter, call.startedAt);
  }

  protected waitsLong(call: PendingCall): void {
    const now = this.deps.clock.now();
    noteReasons(this.facts, call.options, now, false);
    this.reportWait(call, now);
  }

  protected reportWait(call: PendingCall, now = this.deps.clock.now()): void {
    reportWait(this.deps.observers, this, call, now, this.placeOf(call));
  }

  protected timeoutError(call: PendingCall): Error {
    const now = this.deps.clock.now();
    noteReasons(this.facts, call.options, now);
    const askedAt = this.waiter ? this.waiter.asked?.at : askedToStopAt(firstOf(this.storeLeases));
    const details = {
      place: this.placeOf(call),
      heldByCaller: heldByCaller(this.resource, call, this.lines, this.deps),
      cancelRequestedMsAgo: askedAt === undefined ? undefined : now - askedAt,
    };
    return waitedTooLong(this.resource, call, now, this.log, call.attempts, details);
  }

  /** Only known for the call that the waiter asks for: other processes may be between it and the calls behind it. */
  private placeOf(call: PendingCall): number | undefined {
    return this.waiter?.call === call ? this.waiter.place : undefined;
  }
}
