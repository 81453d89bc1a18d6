import type { Clock, Timer } from '../util/clock.js';
import { DueQueue } from '../util/alarms.js';
import { LockUnavailableError } from '../api/errors.js';
import type { LockEventOf } from '../events/events.js';
import type { LockObservers } from '../events/observers.js';
import type { Observation } from '../tracing/observation.js';
import { asStoreError, type LockStoreError } from '../store/store-error.js';
import { type LockStore, PER_STEP } from '../store/lock-store.js';
import { syncLabel } from './labels.js';
import type { LocalHolder, StoreLease } from './store-lease.js';

/** The shortest pause before a failed renewal is tried again; the longest is a second. */
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/** A timer that is later than this is remembered, for the error of a lease that is lost by it. */
const STANDSTILL_MS = 50;
/** The number of remembered times at which the event loop was blocked. */
const STANDSTILLS = 8;

/**
 * The timer fires this often in the shortest lease if an observer listens for a blocked event loop. Its lateness is the
 * rest of the blocked time when it was due. So a block of more than a third of a lease is never missed if a quarter
 * counts, at whatever time between two renewals it begins.
 */
const CHECKS_IN_A_LEASE = 12;
const DANGEROUS_PART = 1 / 4;
const MIN_CHECK_MS = 10;
/** The interval between searches for the shortest lease: leases that have ended are not noticed at once. */
const SCAN_EVERY_MS = 1_000;

/** The pause before the next batch, in which replies and other commands get their turn. */
const BATCH_PAUSE_MS = 1;
/**
 * A lease is renewed before it is due by up to this part of its length if that fills a batch. With half of the time
 * between two renewals, leases of one length soon share batches, whenever they were granted.
 */
const ALONG = 1 / 6;
/** The maximum number of leases that are visited to fill a batch. Some are not renewed. */
const MAX_VISITED = 4 * PER_STEP;

/**
 * Renews every lease of the process after a third of its length at the latest, and ends it at its deadline, with one
 * timer for all. Due renewals are sent in batches, each as one step of the store. Late ones are ordered by deadline.
 */
export class Watchdog {
  readonly #queue = new DueQueue<LocalHolder>();
  /** The holders whose renewal is due and has not been sent, by deadline. */
  readonly #late = new DueQueue<LocalHolder>();
  readonly #left = new WeakSet<LocalHolder>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;
  /** No lease that it renews is shorter. There may be none that is as short any more. */
  #shortestMs = Infinity;
  #scannedAt = -Infinity;
  /** The check interval for which the timer was set. */
  #checkedMs = Infinity;
  lastFailureAt: number | undefined;
  /** The latest times at which its timer was late, and by how much. */
  readonly #standstills: { readonly endedAt: number; readonly lateMs: number }[] = [];

  constructor(
    private readonly store: LockStore,
    private readonly clock: Clock,
    private readonly observers: LockObservers,
    private readonly observation: Observation,
  ) {}

  get size(): number {
    return this.#queue.size + this.#late.size;
  }

  watch(holder: LocalHolder): void {
    this.#late.remove(holder);
    this.#schedule(holder);
    this.#arm();
  }

  unwatch(holder: LocalHolder): void {
    this.#late.remove(holder);
    this.#queue.remove(holder);
    // The timer stays: to clear and set one for each short lease would cost more than one idle wake-up.
  }

  /** Returns the holders of a resource in this process. Takes time proportional to the number of all leases. */
  holdersOf(resource: string): LocalHolder[] {
    return this.holders().filter(({ storeLease }) => storeLease.owner.resource === resource);
  }

  holders(): LocalHolder[] {
    return [...this.#queue, ...this.#late];
  }

  /**
   * Returns the longest time for which the event loop was blocked since then, by the timer's lateness. It may have been
   * longer: the timer cannot measure the time before it was due.
   */
  blockedMs(since: number): number {
    const now = this.clock.now();
    // The timer is due and has not run yet: the event loop is only just unblocked.
    let longest = this.#wakesAt < now && now - this.#wakesAt > STANDSTILL_MS ? now - this.#wakesAt : 0;
    for (const { endedAt, lateMs } of this.#standstills) if (endedAt > since) longest = Math.max(longest, lateMs);
    return longest;
  }

  /**
   * Stops its timer: from now on, leases are neither renewed nor ended. The held ones become fixed leases, which end by
   * themselves. Observers are notified now, because nothing will notice their end.
   */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakesAt = Infinity;
    const now = this.clock.now();
    for (const holder of [...this.#late, ...this.#queue]) {
      if (!holder.checkHeld()) continue;
      this.#left.add(holder);
      if (!this.observers.wants('leaseAbandoned')) continue;
      const heldMs = now - holder.acquiredAt;
      this.observers.emit({ type: 'leaseAbandoned', ...this.observers.describe(holder), heldMs });
    }
  }

  hasLeft(holder: LocalHolder): boolean {
    return this.#left.has(holder);
  }

  #schedule(holder: LocalHolder): void {
    const endsAt = holder.renewable ? Math.min(holder.storeLease.nextRenewalAt, holder.deadline) : holder.deadline;
    holder.dueAt = Math.min(endsAt, holder.warnAt);
    this.#queue.put(holder);
    if (holder.renewable && holder.storeLease.leaseMs < this.#shortestMs) this.#shortestMs = holder.storeLease.leaseMs;
  }

  #arm(): void {
    const first = this.#queue.first();
    let wakesAt = this.#late.size > 0 ? this.clock.now() + BATCH_PAUSE_MS : (first?.dueAt ?? Infinity);
    if (this.#shortestMs < this.#checkedMs) {
      this.#checkedMs = this.#shortestMs;
      if (this.observers.wants('eventLoopBlocked')) wakesAt = Math.min(wakesAt, this.#checkAt());
    }
    if (wakesAt >= this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = wakesAt;
    // In the background: a lease alone is no reason to keep a process alive.
    this.#timer = this.clock.setTimer(() => this.#renewDue(), wakesAt - this.clock.now(), { background: true });
  }

  #checkAt(): number {
    return this.clock.now() + Math.max(MIN_CHECK_MS, this.#shortestMs / CHECKS_IN_A_LEASE);
  }

  #findShortest(now: number): void {
    if (this.size > 0 && now < this.#scannedAt + SCAN_EVERY_MS) return;
    this.#scannedAt = now;
    this.#shortestMs = Infinity;
    for (const { renewable, storeLease } of this.holders()) {
      if (renewable && storeLease.leaseMs < this.#shortestMs) this.#shortestMs = storeLease.leaseMs;
    }
  }

  #renewDue(): void {
    this.#timer = undefined;
    const now = this.clock.now();
    const dueAt = this.#wakesAt;
    const lateMs = now - dueAt;
    if (lateMs > STANDSTILL_MS && this.#standstills.push({ endedAt: now, lateMs }) > STANDSTILLS) {
      this.#standstills.shift();
    }
    this.#wakesAt = this.#checkedMs = Infinity;
    // Reports before the renewals would delay them.
    const danger = this.#findDanger(dueAt, now);
    for (let holder = this.#queue.first(); holder && holder.dueAt <= now; holder = this.#queue.first()) {
      this.#queue.remove(holder);
      holder.dueAt = holder.deadline;
      this.#late.put(holder);
    }
    let heldLong: LocalHolder[] | undefined;
    let renewals = 0;
    for (let holder = this.#late.first(); holder && renewals < PER_STEP; holder = this.#late.first()) {
      this.#late.remove(holder);
      // This ends the lease when its deadline has passed.
      if (!holder.checkHeld()) continue;
      if (this.#renewIfDue(holder, now)) renewals++;
      if (holder.warnAt <= now) {
        holder.warned();
        (heldLong ??= []).push(holder);
      }
      this.#schedule(holder);
    }
    if (renewals > 0) this.#renewAlong(now, PER_STEP - renewals);
    this.#findShortest(now);
    this.#arm();
    if (danger) this.observers.emit(danger);
    for (const holder of heldLong ?? []) this.#emitHeldLong(holder, now);
  }

  /** Fills a batch with leases that are due soon: they cost less with others than alone. */
  #renewAlong(now: number, room: number): void {
    const visited: LocalHolder[] = [];
    for (let holder = this.#queue.first(); holder && room > 0; holder = this.#queue.first()) {
      const earlyMs = ALONG * holder.storeLease.leaseMs;
      if (holder.dueAt > now + earlyMs || visited.length === MAX_VISITED) break;
      this.#queue.remove(holder);
      if (!holder.checkHeld()) continue;
      if (this.#renewIfDue(holder, now, earlyMs)) room--;
      visited.push(holder);
    }
    for (const holder of visited) this.#schedule(holder);
  }

  /** @returns whether it was renewed */
  #renewIfDue(holder: LocalHolder, now: number, earlyMs = 0): boolean {
    if (!holder.renewable || holder.storeLease.nextRenewalAt > now + earlyMs) return false;
    this.#renew(holder, now);
    return true;
  }

  #emitHeldLong(holder: LocalHolder, now: number): void {
    if (!this.observers.wants('heldLong')) return;
    const heldMs = now - holder.acquiredAt;
    this.observers.emit({ type: 'heldLong', ...this.observers.describe(holder), heldMs });
  }

  /** Finds the lease in danger before a loss is reported, which may change it. */
  #findDanger(dueAt: number, now: number): LockEventOf<'eventLoopBlocked'> | undefined {
    const blockedMs = now - dueAt;
    const longestMs = blockedMs / DANGEROUS_PART;
    if (blockedMs <= STANDSTILL_MS || longestMs <= this.#shortestMs) return undefined;
    if (!this.observers.wants('eventLoopBlocked')) return undefined;
    let holder: LocalHolder | undefined;
    for (const each of this.holders()) {
      // One that was granted since has lost no time.
      const isInDanger = each.renewable && each.storeLease.leaseMs < longestMs && each.acquiredAt <= dueAt;
      if (isInDanger && !(holder && holder.deadline <= each.deadline)) holder = each;
    }
    if (holder === undefined) return undefined;
    const { leaseMs } = holder.storeLease;
    const leftMs = Math.max(0, holder.deadline - now);
    return { type: 'eventLoopBlocked', ...this.observers.describe(holder), blockedMs, leaseMs, leftMs };
  }

  #renew(holder: LocalHolder, sentAt: number): void {
    const { storeLease } = holder;
    // No time-out of its own: without an answer by then, the next renewal is due, and the deadline decides.
    storeLease.nextRenewalAt = sentAt + storeLease.leaseMs / 3;
    const leaseMs = holder.renewalMs();
    if (storeLease.label !== holder.label || storeLease.hasSeveralHolders) syncLabel(storeLease, this.store);
    const renew = (): Promise<boolean> =>
      storeLease.renewBy(leaseMs, () => this.store.renew(storeLease.owner, leaseMs), false, sentAt);
    const { observation } = this;
    const renewed = observation.followsRenewals ? observation.renewal(holder.followed, 'watchdog', renew) : renew();
    this.#heed(renewed, storeLease, sentAt);
  }

  #heed(renewed: Promise<boolean>, lease: StoreLease, sentAt: number): void {
    renewed.then(
      (isOwner) => {
        this.observers.answered();
        if (!isOwner) lease.takenOver();
        else if (lease.trouble) this.#renewedAgain(lease);
      },
      (reason: unknown) => {
        const cause = asStoreError(reason);
        this.lastFailureAt = this.clock.now();
        const { since = sentAt, failures = 0 } = lease.trouble ?? {};
        lease.trouble = { since, failures: failures + 1, cause };
        const present = lease.holders.find((each) => each.checkHeld());
        if (!present) return;
        this.#renewSoon(present);
        this.#emitRenewalFailed(present, cause);
      },
    );
  }

  /** A renewal has failed, so the next one comes early. */
  #renewSoon(holder: LocalHolder): void {
    const { storeLease } = holder;
    const pause = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, storeLease.leaseMs / 15));
    storeLease.nextRenewalAt = Math.min(storeLease.nextRenewalAt, this.clock.now() + pause);
    this.watch(holder);
  }

  #renewedAgain(lease: StoreLease): void {
    const { failures, since } = lease.trouble!;
    lease.trouble = undefined;
    const present = lease.holders.find((each) => each.checkHeld());
    if (!present || !this.observers.wants('renewalRecovered')) return;
    const failedForMs = this.clock.now() - since;
    this.observers.emit({ type: 'renewalRecovered', ...this.observers.describe(present), failures, failedForMs });
  }

  #emitRenewalFailed(holder: LocalHolder, cause: LockStoreError): void {
    if (!this.observers.wants('renewalFailed')) return;
    const error = new LockUnavailableError(holder.storeLease.owner.resource, 'renew', 'failed', cause);
    this.observers.emit({ type: 'renewalFailed', ...this.observers.describe(holder), error });
  }
}
