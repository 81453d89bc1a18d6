import { type AskerDeps, type AttemptLog, failurePause, HEARTBEAT_MS } from './attempts.js';
import {
  asStoreError,
  type Hearing,
  KEPT_AT_ONCE,
  type KeepReply,
  type LockOwner,
  type LockStore,
  LockStoreError,
  type QueuedPlace,
} from './lock-store.js';
import { type Alarm, alarmThat, type Due, DueQueue } from '../util/alarms.js';
import { inRootContext } from '../util/async-contexts.js';
import { jitter } from '../util/backoff.js';

/** How many commands may be under way at a time. The next one is sent when one of them is answered. */
const MOST_UNDER_WAY = 4;
/** Once messages may be lost, every place is kept within this time. */
const SPREAD_MS = 1_000;
/** However long its lease is, a place is kept this often: that finds what no message tells, such as a deleted key. */
const LONGEST_PERIOD_MS = 15_000;

/** A waiter in the queue of the store. */
export interface QueuedWaiter {
  readonly owner: LockOwner;
  readonly call: { readonly options: { readonly leaseMs: number; readonly attemptTimeoutMs: number } };
  readonly log: AttemptLog;
  /** The last known place in the queue, counted from 1. */
  readonly place?: number;
  /** What {@link PlaceKeeper.losses} was when the last command for it was sent. */
  lossesBefore: number;
  /** Set by the keeper, from the first answer that says that it is in the queue. */
  kept?: Place | undefined;
  /** When the holders should be known next, because they are told to the user. */
  newsDueAt(now: number): number;
  onKept(reply: QueuedPlace, sentAt: number, now: number): void;
  ask(): void;
}

/** The place of a waiter in the queue of the store. */
export class Place implements Due {
  dueAt = 0;
  heapIndex = -1;
  /** The command that keeps it, until that is answered or times out. */
  batch: Batch | undefined;
  /** Whether the last command failed, and another one follows. */
  isTriedAgain = false;

  constructor(
    readonly waiter: QueuedWaiter,
    readonly group: Group,
  ) {}

  get isScheduled(): boolean {
    return this.heapIndex !== -1;
  }
}

/** The places that one step of the store can keep. */
interface Group {
  readonly fence: string;
  readonly places: DueQueue<Place>;
  /** How many waiters have a place in it, also while they ask. */
  size: number;
  /** Rings when the first place is due. */
  readonly alarm: Alarm;
}

/** One command. */
interface Batch {
  readonly places: readonly Place[];
  readonly sentAt: number;
  /** Rings when it counts as timed out. Set until then, or until it is answered. */
  timeout: Alarm | undefined;
}

/**
 * Keeps the places of all waiters of this process in the queues of the store, many with one command. While messages
 * arrive, a place is kept every third of its lease, and nothing else has to be asked. While they may be lost, it is kept
 * every second. A waiter whose place is gone, or whose resource is free, then asks by itself.
 */
export class PlaceKeeper {
  /** How often messages may have been lost. An answer to what was sent before the last time does not calm a waiter. */
  losses = 0;
  readonly #groups = new Map<string, Group>();
  /** Groups that may have places due, but too many commands were under way. */
  readonly #heldBack = new Set<Group>();
  #underWay = 0;
  /** How many waiters have a place. */
  #size = 0;

  constructor(private readonly deps: AskerDeps & { readonly store: LockStore }) {}

  /**
   * The store has said that the waiter is in the queue. Its place is kept from now on, until the waiter asks by itself.
   *
   * @returns false if the store does not keep places: the waiter then has to ask every second
   */
  keep(waiter: QueuedWaiter, now: number): boolean {
    const { keepPlaces, hearing } = this.deps.store;
    if (keepPlaces === undefined || hearing === undefined) return false;
    const place = (waiter.kept ??= this.#enter(waiter, hearing));
    const isCalmed = waiter.lossesBefore === this.losses;
    this.#put(place, isCalmed ? Math.min(now + this.#periodOf(waiter, hearing), waiter.newsDueAt(now)) : now);
    return true;
  }

  /** Whether the place of this waiter is kept, so that it need not ask. */
  keeps({ kept }: QueuedWaiter): boolean {
    return kept !== undefined && (kept.isScheduled || kept.batch !== undefined);
  }

  /** Whether a command that keeps the place is under way, or is sent as soon as possible. */
  asksFor(waiter: QueuedWaiter, now: number): boolean {
    const { kept } = waiter;
    return kept !== undefined && this.keeps(waiter) && (!kept.isScheduled || kept.isTriedAgain || kept.dueAt <= now);
  }

  /** The waiter asks by itself, which keeps the place too. */
  pause({ kept }: QueuedWaiter): void {
    if (kept === undefined) return;
    kept.batch = undefined;
    if (!kept.isScheduled) return;
    kept.group.places.remove(kept);
    this.#wake(kept.group);
  }

  /** It no longer waits. */
  leave(waiter: QueuedWaiter): void {
    if (waiter.kept === undefined) return;
    const { group } = waiter.kept;
    this.pause(waiter);
    waiter.kept = undefined;
    if (--group.size === 0) {
      this.#groups.delete(group.fence);
      this.#heldBack.delete(group);
    }
    if (--this.#size === 0) this.deps.store.hearing?.rely(false);
  }

  /** The waiter goes on for another call, whose news may be due sooner. */
  hasten(waiter: QueuedWaiter, now: number): void {
    if (waiter.kept) this.#hasten(waiter.kept, waiter.newsDueAt(now));
  }

  /** From now on messages may be lost. */
  unproven(): void {
    const { clock, random } = this.deps;
    this.losses++;
    const now = clock.now();
    for (const { places } of this.#groups.values()) {
      for (const place of Array.from(places)) this.#hasten(place, now + random.fraction() * SPREAD_MS);
    }
  }

  /** Messages arrive again. Some may have been missed, so every place is kept now. */
  reconnected(): void {
    this.losses++;
    const now = this.deps.clock.now();
    for (const group of this.#groups.values()) {
      for (const place of Array.from(group.places)) this.#hasten(place, now);
      this.#send(group);
    }
  }

  #enter(waiter: QueuedWaiter, hearing: Hearing): Place {
    const fence = this.deps.store.fenceOf(waiter.owner.resource);
    const group = this.#groups.get(fence) ?? this.#addGroup(fence);
    group.size++;
    if (this.#size++ === 0) hearing.rely(true);
    return new Place(waiter, group);
  }

  #addGroup(fence: string): Group {
    const group: Group = { fence, places: new DueQueue(), size: 0, alarm: alarmThat(() => this.#send(group)) };
    this.#groups.set(fence, group);
    return group;
  }

  #put(place: Place, dueAt: number): void {
    place.dueAt = dueAt;
    place.group.places.put(place);
    this.#wake(place.group);
  }

  #hasten(place: Place, at: number): void {
    if (place.isScheduled && at < place.dueAt) this.#put(place, at);
  }

  #wake({ places, alarm }: Group): void {
    this.deps.alarms.set(alarm, places.first()?.dueAt ?? Infinity);
  }

  #periodOf(waiter: QueuedWaiter, { quietMs }: Hearing): number {
    const factor = jitter(this.deps.random);
    const periodMs = keepPeriodMs(waiter.call.options.leaseMs);
    if (!(quietMs > 0)) return Math.min(HEARTBEAT_MS, periodMs) * factor;
    const isFirst = (waiter.place ?? 1) <= 1;
    return Math.min(periodMs * factor, isFirst ? quietMs : Infinity);
  }

  #send(group: Group): void {
    const now = this.deps.clock.now();
    while (this.#underWay < MOST_UNDER_WAY) {
      const places = takeDue(group.places, now);
      if (places.length === 0) return this.#wake(group);
      this.#sendOne(places, now);
    }
    this.#heldBack.add(group);
  }

  #sendOne(places: readonly Place[], sentAt: number): void {
    const { store, alarms } = this.deps;
    const timeout = alarmThat(() => this.#onTimeout(batch));
    const batch: Batch = { places, sentAt, timeout };
    for (const place of places) {
      place.batch = batch;
      place.isTriedAgain = false;
      place.waiter.lossesBefore = this.losses;
      place.waiter.log.asked(sentAt);
    }
    this.#underWay++;
    alarms.set(timeout, sentAt + Math.min(...places.map(({ waiter }) => waiter.call.options.attemptTimeoutMs)));
    const kept = places.map(({ waiter: { owner, call } }) => ({ waiter: owner, leaseMs: call.options.leaseMs }));
    // It belongs to no call, though the connection may be made anew for it.
    inRootContext(() => store.keepPlaces!(kept, sentAt)).then(
      (replies) => this.#onReplies(batch, replies),
      (error: unknown) => this.#onError(batch, asStoreError(error)),
    );
  }

  #onReplies(batch: Batch, replies: readonly KeepReply[]): void {
    this.#settle(batch);
    const now = this.deps.clock.now();
    for (const [index, place] of batch.places.entries()) this.#onReply(place, replies[index], batch, now);
    this.#sendHeldBack();
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
    else waiter.log.busy(reply.ttlMs, reply.seen, now);
  }

  #onError(batch: Batch, error: LockStoreError): void {
    this.#settle(batch);
    const places = this.#unanswered(batch);
    for (const { waiter } of places) waiter.log.failed(error);
    // A single question may be allowed. If it is not, its error says so.
    if (error.failure === 'refused') for (const { waiter } of places) waiter.ask();
    else this.#tryAgain(places);
    this.#sendHeldBack();
  }

  #onTimeout(batch: Batch): void {
    this.#settle(batch);
    const places = this.#unanswered(batch);
    const passedMs = this.deps.clock.now() - batch.sentAt;
    for (const { waiter } of places) {
      const { attemptTimeoutMs } = waiter.call.options;
      if (passedMs < attemptTimeoutMs) continue;
      waiter.log.unanswered(new LockStoreError('unknown', `no answer within ${attemptTimeoutMs} ms`));
    }
    this.#tryAgain(places);
    this.#sendHeldBack();
  }

  /** The places that wait for the answer to this command. They do no longer. */
  #unanswered(batch: Batch): Place[] {
    const places = batch.places.filter((place) => place.batch === batch);
    for (const place of places) place.batch = undefined;
    return places;
  }

  /** All at once again, so that they still share a command. */
  #tryAgain(places: readonly Place[]): void {
    const failures = Math.max(1, ...places.map(({ waiter }) => waiter.log.failures));
    const tryAt = this.deps.clock.now() + failurePause({ failures }, this.deps.random);
    for (const place of places) {
      place.isTriedAgain = true;
      this.#put(place, tryAt);
    }
  }

  #settle(batch: Batch): void {
    if (batch.timeout === undefined) return;
    this.deps.alarms.cancel(batch.timeout);
    batch.timeout = undefined;
    this.#underWay--;
  }

  #sendHeldBack(): void {
    for (const group of this.#heldBack) {
      if (this.#underWay >= MOST_UNDER_WAY) return;
      this.#heldBack.delete(group);
      this.#send(group);
    }
  }
}

/** How often a place is kept at least, before jitter. A third of the lease leaves time for two more tries. */
export function keepPeriodMs(leaseMs: number): number {
  return Math.min(leaseMs / 3, LONGEST_PERIOD_MS);
}

/** Those that are due. What is due within half its period goes along with them: that costs hardly more. */
function takeDue(places: DueQueue<Place>, now: number): Place[] {
  const taken: Place[] = [];
  for (let place = places.first(); place && taken.length < KEPT_AT_ONCE; place = places.first()) {
    const early = taken.length === 0 ? 0 : keepPeriodMs(place.waiter.call.options.leaseMs) / 2;
    if (place.dueAt > now + early) break;
    places.remove(place);
    taken.push(place);
  }
  return taken;
}
