import type { Clock } from '../util/clock.js';
import type { Hold } from './hold.js';
import { isSharedMode, type LockMode, type ResolvedLockOptions, isSameRequest } from '../api/lock-options.js';
import type { LockOwner } from '../store/lock-store.js';
import { validUntil } from '../store/validity.js';

/** A renewal that was sent. */
export interface Renewal {
  readonly sentAt: number;
  readonly leaseMs: number;
  /** Until when the lock may be trusted if this is the last one that Redis has executed. */
  readonly validUntil: number;
  /** Whether it can make the lease shorter, and may still be executed: no later one says that it will not. */
  mayCut: boolean;
}

/** What decides whether one lease may follow another in the same store lease. */
type Terms = Pick<
  ResolvedLockOptions,
  'mode' | 'permits' | 'leaseMs' | 'watchdog' | 'maxHoldMs' | 'cohort' | 'cohortMs'
>;

/**
 * The time that this process has one lock in the store, and the deadline until which that may be believed. Leases of this
 * process may follow one another in it, or read side by side, without the store being asked.
 */
export class StoreLease {
  /** Who holds the lock at the moment: one, or several that read. */
  holders: readonly Hold[] = [];
  /** How the store has it. */
  mode: LockMode;
  /** Whether the store is known to have it to read. */
  isReadLock: boolean;
  #leaseMs: number;
  /** No renewal is trusted for longer: one that makes the lease this short may still be executed after it. */
  #trustedMs = Infinity;
  /** For the watchdog: when the next renewal is to be sent. */
  nextRenewalAt: number;
  /** Transfers that may have been executed, or may still be: nobody joins what may be somebody else's. */
  departures = 0;
  /**
   * Whether the store may have forgotten it, as far as this process has heard: then nobody follows on it unasked. Another process
   * may have a larger token already.
   */
  isInDoubt = false;
  /** Whether an attempt to acquire it may still be executed, and grant its owner what it has handed on by then. */
  mayComeBack = false;
  #passedOn = 0;
  #confirmedUntil: number;
  #deadline: number;
  /** Renewals that may be executed or have been, without an answer yet, in the order they were sent. */
  #unanswered: Renewal[] | undefined;

  /**
   * @param token of its first lease
   * @param sentAt when the command was sent that was granted
   */
  constructor(
    readonly ownership: LockOwner,
    private readonly token: number,
    sentAt: number,
    private readonly terms: Terms,
    private readonly clock: Clock,
    readonly beganAt = clock.now(),
  ) {
    this.mode = terms.mode;
    this.isReadLock = terms.mode === 'read';
    this.#leaseMs = terms.leaseMs;
    this.#confirmedUntil = this.#deadline = validUntil(sentAt, terms.leaseMs);
    this.nextRenewalAt = sentAt + terms.leaseMs / 3;
  }

  /** How long each renewal makes the lease. */
  get leaseMs(): number {
    return Math.min(this.#leaseMs, this.#trustedMs);
  }

  set leaseMs(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** The monotonic time after which the lock may be somebody else's. */
  get deadline(): number {
    return this.#deadline;
  }

  /** The token of the lease that stands on it now: the first one's, and one more for each that followed. */
  get fencingToken(): number {
    return this.token + this.#passedOn;
  }

  /** Whether others may hold the resource at the same time. */
  get isShared(): boolean {
    return isSharedMode(this.mode);
  }

  /** Whether a lease on these terms may read beside those that do. */
  mayShareWith(next: Terms): boolean {
    // An extension may still make it shorter than was asked for.
    const isSteady = !this.#unanswered?.some(({ mayCut }) => mayCut);
    return this.mode === 'read' && isSteady && this.mayPassTo(next);
  }

  /**
   * Whether a lease on these terms may follow the one that ends now. Not for long: others wait in the store meanwhile, a tick has
   * numbers for 32 leases, and where the store has forgotten this one unnoticed, the next token is smaller than those it granted since.
   */
  mayPassTo(next: Terms, now = this.clock.now()): boolean {
    const { terms } = this;
    return (
      this.departures === 0 &&
      !this.isInDoubt &&
      this.#passedOn < Math.min(terms.cohort, next.cohort) &&
      now - this.beganAt < Math.min(terms.cohortMs, next.cohortMs) &&
      now < this.#deadline &&
      this.mode === next.mode &&
      isSameRequest(terms.permits, next.permits) &&
      terms.watchdog &&
      next.watchdog &&
      // Whether the lease was extended, or cut for the sake of a maxHoldMs.
      this.leaseMs === next.leaseMs &&
      terms.maxHoldMs === Infinity &&
      next.maxHoldMs === Infinity
    );
  }

  /** The next lease begins, with a larger token. */
  passOn(): void {
    this.#passedOn++;
  }

  enter(hold: Hold): void {
    this.holders = this.holders.length === 0 ? [hold] : [...this.holders, hold];
  }

  /** The hold is over. Says whether others hold the lock still. */
  leave(hold: Hold): boolean {
    this.holders = this.holders.filter((other) => other !== hold);
    return this.holders.length > 0;
  }

  /**
   * A renewal is about to be sent. Until it is answered it may be executed, and the lock may then end with it: the lock is
   * never trusted for longer than that, however long the renewals before it may last.
   *
   * @param exactly whether it makes the lease shorter too
   */
  renewing(sentAt: number, leaseMs: number, exactly = false): Renewal {
    const renewal = { sentAt, leaseMs, validUntil: validUntil(sentAt, leaseMs), mayCut: exactly };
    (this.#unanswered ??= []).push(renewal);
    this.#deadline = Math.min(this.#deadline, renewal.validUntil);
    return renewal;
  }

  /** Whether renewals were sent of whom nothing was heard. */
  get isUnconfirmed(): boolean {
    return (this.#unanswered?.length ?? 0) > 0;
  }

  /** It was executed. A confirmation that comes after the deadline revives nothing: the lock is lost. */
  confirm(renewal: Renewal): void {
    const index = this.#unanswered?.indexOf(renewal) ?? -1;
    if (index === -1 || this.clock.now() >= this.#deadline) return;
    // Whatever was sent before it was executed before it, or never, or lengthens the lease only. But a script that Redis did
    // not know is sent once more: while there is no answer to one that cuts, it may still come.
    this.#unanswered = this.#unanswered!.filter((other, place) => place > index || (place < index && other.mayCut));
    this.#confirmedUntil = validUntil(renewal.sentAt, Math.min(renewal.leaseMs, this.#trustedMs));
    this.#findDeadline();
  }

  /** It was not executed and never will be. */
  dismiss(renewal: Renewal): void {
    this.#unanswered = this.#unanswered?.filter((other) => other !== renewal);
    this.#findDeadline();
  }

  /** There will be no answer to it. But it may come late, on a connection that was thought dead: then it cuts what was renewed since. */
  forget(renewal: Renewal): void {
    if (renewal.mayCut) this.#trustedMs = Math.min(this.#trustedMs, renewal.leaseMs);
    renewal.mayCut = false;
  }

  /** Redis says that it is not this process's any more. */
  takenOver(): void {
    for (const hold of this.holders) hold.lose('takenOver');
  }

  #findDeadline(): void {
    this.#deadline = this.#confirmedUntil;
    for (const { validUntil } of this.#unanswered ?? []) this.#deadline = Math.min(this.#deadline, validUntil);
  }
}
