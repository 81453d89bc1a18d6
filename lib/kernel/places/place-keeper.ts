import { failurePause, HEARTBEAT_MS } from '../store/ask.js';
import { type Batch, type Group, keepPeriodMs, Place, type QueuedWaiter, takeDue, timeoutOf } from './place.js';
import { asStoreError, LockStoreError } from '../store/store-error.js';
import type { MessageHealth } from '../store/message-health.js';
import { type KeepReply, PER_STEP, type LockStore } from '../store/lock-store.js';
import { type Alarms, alarmThat, DueQueue } from '../util/alarms.js';
import { inRootContext } from '../util/async-contexts.js';
import { type Clock, jitter, type Random } from '../util/clock.js';

/** The maximum number of commands of a group in flight. The next one is sent when one of them is answered. */
const MAX_GROUP = 4;
/** The maximum number of places in the commands of all groups in flight. */
const MAX_UNDER_WAY = MAX_GROUP * PER_STEP;
/** A command that is not answered by then holds up its own group only. Another group may have another server. */
const SLOW_MS = 100;
/** Once messages may be lost, every place is kept within this time. */
const SPREAD_MS = 1_000;

/**
 * Keeps the places of all waiters of this process in the queues of the store, many with one command. While messages
 * arrive, a place is kept every third of its lease, and nothing else has to be asked. While they may be lost, it is kept
 * every second. A waiter whose place is gone, or whose resource is free, then asks by itself.
 */
export class PlaceKeeper {
  /** Counts the times at which messages may have been lost. An answer to an earlier command does not calm a waiter. */
  losses = 0;
  readonly #groups = new Map<string, Group>();
  /** Groups that may have places due, but too many places of all groups were under way. */
  readonly #heldBack = new Set<Group>();
  /** The number of places in the commands that hold up other groups. */
  #underWay = 0;
  #size = 0;

  constructor(
    private readonly deps: {
      readonly store: LockStore;
      readonly clock: Clock;
      readonly random: Random;
      readonly alarms: Alarms;
    },
  ) {}

  /**
   * Keeps the place of a queued waiter from now on, until the waiter asks by itself: from `sentAt`, because the event
   * loop may have been blocked before the reply was read, and by `lookAt`, when the resource may be free without a
   * message. @returns false if the store does not keep places: the waiter then has to ask every second
   */
  keep(waiter: QueuedWaiter, sentAt: number, now: number, lookAt: number): boolean {
    const { keepPlaces, hearing } = this.deps.store;
    if (keepPlaces === undefined || hearing === undefined) return false;
    const place = (waiter.kept ??= this.#enter(waiter, hearing));
    const isCalmed = waiter.lossesBefore === this.losses;
    const keepAt = Math.min(sentAt + this.#periodOf(waiter, hearing), waiter.newsDueAt(now), lookAt);
    const dueAt = isCalmed ? keepAt : now;
    this.#put(place, Math.max(dueAt, now), now);
    return true;
  }

  keeps({ kept }: QueuedWaiter): boolean {
    return kept !== undefined && (kept.isScheduled || kept.batch !== undefined);
  }

  /** Stops keeping its place until the waiter has asked. */
  pause({ kept }: QueuedWaiter): void {
    if (kept === undefined) return;
    kept.batch = undefined;
    kept.group.places.remove(kept);
  }

  leave(waiter: QueuedWaiter): void {
    if (waiter.kept === undefined) return;
    const { group } = waiter.kept;
    this.pause(waiter);
    waiter.kept = undefined;
    if (--group.size === 0) {
      this.deps.alarms.cancel(group.alarm);
      // The only group stays: the next waiter comes soon as a rule.
      if (this.#groups.size > 1) {
        this.#groups.delete(group.fence);
        this.#heldBack.delete(group);
      }
    }
    if (--this.#size === 0) this.deps.store.hearing?.setNeeded(false);
  }

  /** Called when the waiter serves another call, which may need the holders sooner. */
  hasten(waiter: QueuedWaiter, now: number): void {
    if (waiter.kept) this.#hasten(waiter.kept, waiter.newsDueAt(now), now);
  }

  deliveryUncertain(): void {
    const { clock, random } = this.deps;
    this.losses++;
    const now = clock.now();
    for (const { places } of this.#groups.values()) {
      for (const place of Array.from(places)) this.#hasten(place, now + random.fraction() * SPREAD_MS, now);
    }
  }

  /** Called when messages arrive again. Some may have been missed, so every place is kept now. */
  reconnected(): void {
    this.losses++;
    const now = this.deps.clock.now();
    for (const group of this.#groups.values()) {
      for (const place of Array.from(group.places)) this.#hasten(place, now, now);
      this.#send(group);
    }
  }

  #enter(waiter: QueuedWaiter, hearing: MessageHealth): Place {
    const fence = this.deps.store.fenceOf(waiter.owner.resource);
    const group = this.#groups.get(fence) ?? this.#addGroup(fence);
    group.size++;
    if (this.#size++ === 0) hearing.setNeeded(true);
    return new Place(waiter, group);
  }

  #addGroup(fence: string): Group {
    const alarm = alarmThat(() => this.#send(group));
    const group: Group = { fence, places: new DueQueue(), size: 0, underWay: 0, alarm };
    this.#groups.set(fence, group);
    return group;
  }

  #put(place: Place, dueAt: number, now: number): void {
    place.dueAt = dueAt;
    place.pauseMs = dueAt - now;
    place.group.places.put(place);
    this.#wake(place.group);
  }

  #hasten(place: Place, at: number, now: number): void {
    if (place.isScheduled && at < place.dueAt) this.#put(place, at, now);
  }

  /** An alarm that would ring too soon is left alone: nearly every waiter is granted before its place is due. */
  #wake({ places, alarm }: Group): void {
    const dueAt = places.first()?.dueAt ?? Infinity;
    if (alarm.heapIndex === -1 || dueAt < alarm.dueAt) this.deps.alarms.set(alarm, dueAt);
  }

  #periodOf(waiter: QueuedWaiter, { trustedForMs }: MessageHealth): number {
    const factor = jitter(this.deps.random);
    const periodMs = keepPeriodMs(waiter.call.options.leaseMs);
    if (!(trustedForMs > 0)) return Math.min(HEARTBEAT_MS, periodMs) * factor;
    // Whatever its last known place: it may have been granted since.
    return Math.min(periodMs * factor, trustedForMs);
  }

  /** Sends due places. With too much under way, an answer calls it again. */
  #send(group: Group): void {
    const now = this.deps.clock.now();
    for (let sent = 0; group.underWay < MAX_GROUP; sent++) {
      if (this.#underWay >= MAX_UNDER_WAY) return void this.#heldBack.add(group);
      const places = takeDue(group.places, now, sent > 0);
      if (places.length === 0) return this.#wake(group);
      this.#sendOne(group, places, now);
    }
  }

  #sendOne(group: Group, places: readonly Place[], sentAt: number): void {
    const { store } = this.deps;
    const alarm = alarmThat(() => this.#onAlarm(batch));
    const batch: Batch = { group, places, sentAt, isCounted: true, alarm };
    for (const place of places) {
      place.batch = batch;
      place.waiter.lossesBefore = this.losses;
      place.waiter.log.asked(sentAt);
    }
    group.underWay++;
    this.#underWay += places.length;
    this.#watch(batch);
    const kept = places.map(({ waiter: { owner, call, place } }) => {
      return { waiter: owner, leaseMs: call.options.leaseMs, lastPlace: place };
    });
    // It belongs to no call, even if a call opens the connection.
    inRootContext(() => store.keepPlaces!(kept, sentAt)).then(
      (replies) => this.#onReplies(batch, replies),
      (error: unknown) => this.#onError(batch, asStoreError(error)),
    );
  }

  #onReplies(batch: Batch, replies: readonly KeepReply[]): void {
    this.#settle(batch);
    const now = this.deps.clock.now();
    for (const [index, place] of batch.places.entries()) this.#onReply(place, replies[index], batch, now);
    this.#sendMore(batch);
  }

  #onReply(place: Place, reply: KeepReply | undefined, batch: Batch, now: number): void {
    const { waiter } = place;
    if (!this.keeps(waiter)) return;
    const isLatest = place.batch === batch;
    if (isLatest) place.batch = undefined;
    if (reply === undefined || reply instanceof LockStoreError || reply.status === 'ask') {
      if (reply instanceof LockStoreError) waiter.log.failed(reply);
      waiter.ask();
    } else if (isLatest) waiter.onKept(reply, batch.sentAt, now);
    // It came after its time limit, and the next command is under way or due.
    else waiter.log.busy(reply, now);
  }

  #onError(batch: Batch, error: LockStoreError): void {
    this.#settle(batch);
    const places = batch.places.filter((place) => place.batch === batch);
    for (const place of places) {
      place.batch = undefined;
      place.waiter.log.failed(error);
    }
    // A single question may be allowed. If it is not, its error explains it.
    if (error.failure === 'refused') for (const { waiter } of places) waiter.ask();
    else this.#tryAgain(places);
    this.#sendMore(batch);
  }

  /** Called when a command takes long. Calls that have timed out give up; the others keep waiting for its answer. */
  #onAlarm(batch: Batch): void {
    const now = this.deps.clock.now();
    this.#countNoMore(batch);
    const late = batch.places.filter((place) => place.batch === batch && timeoutOf(place) <= now);
    for (const place of late) {
      place.batch = undefined;
      const { log, call } = place.waiter;
      log.unanswered(new LockStoreError('unknown', `no answer within ${call.options.attemptTimeoutMs} ms`));
    }
    if (late.length > 0) this.#tryAgain(late);
    this.#watch(batch);
    this.#sendMore(batch);
  }

  /** Sets its alarm, or gives it up if no place waits for the answer any more. */
  #watch(batch: Batch): void {
    const timeoutAt = Math.min(...batch.places.filter((place) => place.batch === batch).map(timeoutOf));
    if (timeoutAt === Infinity) return this.#settle(batch);
    this.deps.alarms.set(batch.alarm!, batch.isCounted ? Math.min(timeoutAt, batch.sentAt + SLOW_MS) : timeoutAt);
  }

  /** All at once again, so that they still share a command. */
  #tryAgain(places: readonly Place[]): void {
    const failures = Math.max(1, ...places.map(({ waiter }) => waiter.log.failures));
    const now = this.deps.clock.now();
    const tryAt = now + failurePause({ failures }, this.deps.random);
    for (const place of places) this.#put(place, tryAt, now);
    for (const { waiter } of places) waiter.notKept();
  }

  #settle(batch: Batch): void {
    if (batch.alarm === undefined) return;
    this.deps.alarms.cancel(batch.alarm);
    batch.alarm = undefined;
    batch.group.underWay--;
    this.#countNoMore(batch);
  }

  #countNoMore(batch: Batch): void {
    if (!batch.isCounted) return;
    batch.isCounted = false;
    this.#underWay -= batch.places.length;
  }

  /** After a command that may have held up others. */
  #sendMore({ group: last }: Batch): void {
    // Behind the ones that have waited for longer.
    this.#heldBack.add(last);
    for (const group of this.#heldBack) {
      if (this.#underWay >= MAX_UNDER_WAY) return;
      this.#heldBack.delete(group);
      this.#send(group);
    }
  }
}
