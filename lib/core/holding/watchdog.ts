import type { Clock, Timer } from '../util/clock.js';
import { DueQueue } from '../util/due-queue.js';
import type { Hold } from './hold.js';
import { asStoreError, type LockStore, type LockStoreError } from '../store/lock-store.js';

/** The shortest pause before a failed renewal is tried again; the longest is a second. */
const SHORTEST_RETRY_MS = 10;
const LONGEST_RETRY_MS = 1_000;

/** How many renewals are sent at once. More of them would hold up every other command on the connection. */
export const RENEWALS_AT_ONCE = 256;
/** The pause until the next ones, in which replies and other commands get their turn. */
const BATCH_PAUSE_MS = 1;

/**
 * Renews every lease of the process at a third of its length and ends it at its deadline: one timer for all of them. The
 * renewals that are due go out in batches, each written as one pipeline, and of those that are late the one whose deadline
 * is nearest goes first.
 */
export class Watchdog {
  readonly #queue = new DueQueue<Hold>();
  /** Those whose renewal is due and has not been sent, by deadline. */
  readonly #late = new DueQueue<Hold>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;

  constructor(
    private readonly store: LockStore,
    private readonly clock: Clock,
    private readonly onRenewalFailed: (hold: Hold, error: LockStoreError) => void,
  ) {}

  /** How many leases it watches. */
  get size(): number {
    return this.#queue.size + this.#late.size;
  }

  watch(hold: Hold): void {
    this.#late.remove(hold);
    this.#schedule(hold);
    this.#arm();
  }

  unwatch(hold: Hold): void {
    this.#late.remove(hold);
    this.#queue.remove(hold);
    // The timer stays: clearing and setting one for each short lease would cost more than one idle wake-up.
  }

  /** Stops its timer. Leases are neither renewed nor ended by it after this. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakesAt = Infinity;
  }

  #schedule(hold: Hold): void {
    hold.dueAt = hold.renewable ? Math.min(hold.storeLease.nextRenewalAt, hold.deadline) : hold.deadline;
    this.#queue.put(hold);
  }

  #arm(): void {
    const first = this.#queue.first();
    const wakesAt = this.#late.size > 0 ? this.clock.now() + BATCH_PAUSE_MS : (first?.dueAt ?? Infinity);
    if (wakesAt >= this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = wakesAt;
    // In the background: a lease alone is no reason to keep a process alive.
    this.#timer = this.clock.setTimer(() => this.#tick(), wakesAt - this.clock.now(), { background: true });
  }

  #tick(): void {
    this.#timer = undefined;
    this.#wakesAt = Infinity;
    const now = this.clock.now();
    for (let hold = this.#queue.first(); hold && hold.dueAt <= now; hold = this.#queue.first()) {
      this.#queue.remove(hold);
      hold.dueAt = hold.deadline;
      this.#late.put(hold);
    }
    let renewals = 0;
    for (let hold = this.#late.first(); hold && renewals < RENEWALS_AT_ONCE; hold = this.#late.first()) {
      this.#late.remove(hold);
      // isHeld() ends the lease when its deadline has passed.
      if (!hold.isHeld()) continue;
      if (hold.renewable && hold.storeLease.nextRenewalAt <= now) {
        this.#renew(hold, now);
        renewals++;
      }
      this.#schedule(hold);
    }
    this.#arm();
  }

  #renew(hold: Hold, sentAt: number): void {
    const { storeLease } = hold;
    // No time-out of its own: without an answer by then, the next renewal is due, and the deadline decides.
    storeLease.nextRenewalAt = sentAt + storeLease.leaseMs / 3;
    const leaseMs = hold.renewalMs();
    const renewal = storeLease.renewing(sentAt, leaseMs);
    this.store.renew(storeLease.ownership, leaseMs).then(
      (stillOwner) => {
        if (stillOwner) storeLease.confirm(renewal);
        else storeLease.takenOver();
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        if (cause.failure !== 'unknown') storeLease.dismiss(renewal);
        const holder = storeLease.holders.find((each) => each.isHeld());
        if (!holder) return;
        const pause = Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, storeLease.leaseMs / 15));
        storeLease.nextRenewalAt = Math.min(storeLease.nextRenewalAt, this.clock.now() + pause);
        this.watch(holder);
        this.onRenewalFailed(holder, cause);
      },
    );
  }
}
