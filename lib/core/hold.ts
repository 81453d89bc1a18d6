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

/** A renewal that was sent. */
export interface Renewal {
  /** Until when the lease may be trusted if this is the last one that Redis has executed. */
  readonly validUntil: number;
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
  /** Renewals that may be executed or have been, without an answer yet, in the order they were sent. */
  readonly #unanswered = new Set<Renewal>();
  #confirmed: Renewal;
  #deadline: number;
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
    this.#confirmed = { validUntil: validUntil(grant.sentAt, this.leaseMs) };
    this.#deadline = this.#earliestEnd();
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

  /**
   * A renewal is about to be sent. Until it is answered it may be executed, and the lock may then end with it: the lease
   * is never trusted for longer than that, however long the renewals before it may last.
   */
  renewing(sentAt: number, leaseMs: number): Renewal {
    const renewal = { validUntil: validUntil(sentAt, leaseMs) };
    this.#unanswered.add(renewal);
    this.#deadline = this.#earliestEnd();
    return renewal;
  }

  /** It was executed. A confirmation that comes after the deadline revives nothing: the lease is lost. */
  confirm(renewal: Renewal): void {
    if (!this.isHeld() || !this.#unanswered.has(renewal)) return;
    // Whatever was sent before it was executed before it, or never.
    for (const earlier of this.#unanswered) {
      this.#unanswered.delete(earlier);
      if (earlier === renewal) break;
    }
    this.#confirmed = renewal;
    this.#deadline = this.#earliestEnd();
  }

  /** It was not executed and never will be. */
  dismiss(renewal: Renewal): void {
    this.#unanswered.delete(renewal);
    this.#deadline = this.#earliestEnd();
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

  #earliestEnd(): number {
    let earliest = Math.min(this.#confirmed.validUntil, this.#endsAt);
    for (const { validUntil } of this.#unanswered) earliest = Math.min(earliest, validUntil);
    return earliest;
  }

  #reasonAtDeadline(): LeaseLossReason {
    if (this.clock.now() >= this.#endsAt) return 'maxHold';
    return this.renewable ? 'notRenewed' : 'expired';
  }
}
