import type { Clock, Timer } from './clock.js';
import { DueQueue } from './due-queue.js';
import type { Hold } from './hold.js';
import { asStoreError, type LockStore, type LockStoreError } from './lock-store.js';

/** The shortest pause before a failed renewal is tried again; the longest is a second. */
const SHORTEST_RETRY_MS = 10;
const LONGEST_RETRY_MS = 1_000;

/**
 * Renews every lease of the process at a third of its length and ends it at its deadline: one queue and one timer for all
 * of them. Renewals that fall due together are sent in one tick, so the connection writes them as one pipeline.
 */
export class Watchdog {
  readonly #queue = new DueQueue<Hold>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;

  constructor(
    private readonly store: LockStore,
    private readonly clock: Clock,
    private readonly onRenewalFailed: (hold: Hold, error: LockStoreError) => void,
  ) {}

  /** How many leases it watches. */
  get size(): number {
    return this.#queue.size;
  }

  watch(hold: Hold): void {
    this.#schedule(hold);
    this.#arm();
  }

  unwatch(hold: Hold): void {
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
    hold.dueAt = hold.renewable ? Math.min(hold.nextRenewalAt, hold.deadline) : hold.deadline;
    this.#queue.put(hold);
  }

  #arm(): void {
    const first = this.#queue.first();
    if (first === undefined || first.dueAt >= this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = first.dueAt;
    // In the background: a lease alone is no reason to keep a process alive.
    this.#timer = this.clock.setTimer(() => this.#tick(), first.dueAt - this.clock.now(), { background: true });
  }

  #tick(): void {
    this.#timer = undefined;
    this.#wakesAt = Infinity;
    const now = this.clock.now();
    for (let hold = this.#queue.first(); hold && hold.dueAt <= now; hold = this.#queue.first()) {
      this.#queue.remove(hold);
      // isHeld() ends the lease when its deadline has passed.
      if (!hold.isHeld()) continue;
      if (hold.renewable && hold.nextRenewalAt <= now) this.#renew(hold, now);
      this.#schedule(hold);
    }
    this.#arm();
  }

  #renew(hold: Hold, sentAt: number): void {
    // No time-out of its own: without an answer by then, the next renewal is due, and the deadline decides.
    hold.nextRenewalAt = sentAt + hold.leaseMs / 3;
    const leaseMs = hold.renewalMs();
    const renewal = hold.renewing(sentAt, leaseMs);
    this.store.renew(hold.ownership, leaseMs).then(
      (stillOwner) => {
        if (stillOwner) hold.confirm(renewal);
        else hold.lose('takenOver');
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        if (cause.failure !== 'unknown') hold.dismiss(renewal);
        if (!hold.isHeld()) return;
        const pause = Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, hold.leaseMs / 15));
        hold.nextRenewalAt = Math.min(hold.nextRenewalAt, this.clock.now() + pause);
        this.watch(hold);
        this.onRenewalFailed(hold, cause);
      },
    );
  }
}
