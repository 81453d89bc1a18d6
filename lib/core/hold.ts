import type { Clock } from './clock.js';
import type { Due } from './due-queue.js';
import { LeaseLostError, type LeaseLossReason } from './errors.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { Ownership } from './lock-store.js';
import { leaseFor, validUntil } from './validity.js';

/** A grant, as the store answered it. */
export interface Grant {
  readonly ownership: Ownership;
  readonly fencingToken: number;
  /** The monotonic time at which the command that was granted was sent. */
  readonly sentAt: number;
  readonly attempts: number;
  readonly waitedMs: number;
}

/**
 * One lock that this process holds in the store, and the deadline until which that may be believed. Several leases may
 * stand on it, one for each time a reentrant holder has entered.
 */
export class Hold implements Due {
  readonly ownership: Ownership;
  readonly fencingToken: number;
  /** Whether the watchdog renews it. */
  readonly renewable: boolean;
  readonly attemptTimeoutMs: number;
  readonly acquiredAt: number;
  /** How many leases stand on it. */
  depth = 1;
  leaseMs: number;
  /** For the watchdog: when the next renewal is to be sent. */
  nextRenewalAt: number;
  dueAt = 0;
  heapIndex = -1;

  readonly #endsAt: number;
  #deadline: number;
  #confirmedSentAt: number;
  #state: 'held' | 'released' | 'lost' = 'held';
  #lossError: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  /** The depth commands of one hold go one after another: two in flight could arrive in either order. */
  #depthCommands: Promise<unknown> = Promise.resolve();

  constructor(
    grant: Grant,
    options: ResolvedLockOptions,
    readonly clock: Clock,
    private readonly onLost: (hold: Hold, reason: LeaseLossReason) => void,
  ) {
    this.ownership = grant.ownership;
    this.fencingToken = grant.fencingToken;
    this.renewable = options.watchdog;
    this.attemptTimeoutMs = options.attemptTimeoutMs;
    this.leaseMs = options.leaseMs;
    this.acquiredAt = clock.now();
    this.#endsAt = grant.sentAt + options.maxHoldMs;
    this.#confirmedSentAt = grant.sentAt;
    this.#deadline = Math.min(validUntil(grant.sentAt, this.leaseMs), this.#endsAt);
    this.nextRenewalAt = grant.sentAt + this.leaseMs / 3;
  }

  /** The monotonic time after which the lock may be somebody else's. */
  get deadline(): number {
    return this.#deadline;
  }

  get isReleased(): boolean {
    return this.#state === 'released';
  }

  /** Compares the deadline itself: after a standstill the timers are late, and no flag may be trusted. */
  isHeld(): boolean {
    if (this.#state !== 'held') return false;
    if (this.clock.now() < this.#deadline) return true;
    this.lose(this.#reasonAtDeadline());
    return false;
  }

  remainingMs(): number {
    return this.isHeld() ? Math.max(0, this.#deadline - this.clock.now()) : 0;
  }

  /** How long a renewal that is sent now is to last: the store should not keep the lock after `maxHoldMs`. */
  renewalMs(leaseMs = this.leaseMs): number {
    return Math.max(1, Math.min(leaseMs, leaseFor(this.#endsAt - this.clock.now())));
  }

  /** A renewal sent at `sentAt` was confirmed. One that comes after the deadline revives nothing: the lease is lost. */
  confirm(sentAt: number, leaseMs: number): void {
    if (!this.isHeld() || sentAt < this.#confirmedSentAt) return;
    this.#confirmedSentAt = sentAt;
    this.#deadline = Math.min(validUntil(sentAt, leaseMs), this.#endsAt);
  }

  /**
   * A renewal that may shorten the lease is about to be sent: until it is answered, the lock may end at the earlier of both
   * times. Gives the way back, for when it was not executed.
   */
  foreshorten(sentAt: number, leaseMs: number): () => void {
    const { nextRenewalAt } = this;
    const later = this.#deadline;
    const earlier = validUntil(sentAt, leaseMs);
    if (earlier >= later) return () => {};
    this.#deadline = earlier;
    this.nextRenewalAt = Math.min(nextRenewalAt, sentAt + leaseMs / 3);
    return () => {
      if (this.#deadline !== earlier) return;
      this.#deadline = later;
      this.nextRenewalAt = nextRenewalAt;
    };
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    this.isHeld();
    if (this.#lossError && !this.#controller.signal.aborted) this.#controller.abort(this.#lossError);
    return this.#controller.signal;
  }

  /** Final. Says so once, to the signal and to the listener. */
  lose(reason: LeaseLossReason): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#lossError = new LeaseLostError(this.ownership.resource, reason, this.fencingToken);
    this.onLost(this, reason);
    this.#controller?.abort(this.#lossError);
  }

  /** The error to throw where the lease had to be held: why it was lost, or that it was released. */
  lossError(): LeaseLostError {
    return this.#lossError ?? new LeaseLostError(this.ownership.resource, 'released', this.fencingToken);
  }

  /** Over, before the store is told: nobody may enter or renew it any more. `false`: it was lost before. */
  end(): boolean {
    const wasHeld = this.isHeld();
    if (wasHeld) this.#state = 'released';
    return wasHeld;
  }

  /** Runs depth commands one after another. */
  inOrder<T>(command: () => Promise<T>): Promise<T> {
    const result = this.#depthCommands.then(command);
    this.#depthCommands = result.catch(() => {});
    return result;
  }

  #reasonAtDeadline(): LeaseLossReason {
    if (this.clock.now() >= this.#endsAt) return 'maxHold';
    return this.renewable ? 'notRenewed' : 'expired';
  }
}
