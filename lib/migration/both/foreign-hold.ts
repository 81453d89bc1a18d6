import type { ForeignClaim, ForeignLock, ForeignReply } from '../../core/api/foreign-lock.js';
import type { LockOwner } from '../../core/store/lock-store.js';
import type { Clock } from '../../core/util/clock.js';
import { quote } from '../../core/util/quoted.js';
import type { SecondLease } from '../../core/holding/hold.js';
import { type LocalHolder, type RenewalTrouble, retentionSince, validUntil } from '../../core/holding/store-lease.js';
import { InvalidLockOptionsError, quoteResource } from '../../core/api/errors.js';

/**
 * The lock of another library that a hold has beside its own lock, and the deadline until which this process can trust
 * it. The claim promises that no renewal makes the lease shorter. So the deadline only moves forward.
 */
export class ForeignHold implements SecondLease {
  holders: readonly LocalHolder[] = [];
  trouble: RenewalTrouble | undefined;
  minHoldMs = 0;
  #deadline = -Infinity;
  #heldSince = 0;

  constructor(
    readonly owner: LockOwner,
    readonly lock: ForeignLock,
    readonly key: string,
    readonly claim: ForeignClaim,
    private readonly clock: Clock,
  ) {}

  get name(): string {
    return `the lock ${quote(this.key)} of ${this.lock.library} (alsoLock)`;
  }

  get renewal(): string {
    return `renew ${this.name} beside`;
  }

  get deadline(): number {
    return this.#deadline;
  }

  get lossText(): string {
    return (
      `${this.name} was lost: it was deleted or taken over, or no renewal was confirmed before its deadline. ` +
      'Look for old code that deletes a key without comparing its value, and whether its Redis answers'
    );
  }

  async acquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    const sentAt = this.clock.now();
    const reply = await this.claim.tryAcquire(leaseMs, signal);
    if (reply.status === 'held') {
      this.#heldSince = this.clock.now();
      this.#deadline = Math.max(this.#deadline, validUntil(sentAt, leaseMs));
    }
    return reply;
  }

  /** A confirmation after the deadline changes nothing: the lock is lost. */
  async renew(leaseMs: number, sentAt = this.clock.now()): Promise<boolean> {
    const isOwner = await this.claim.renew(leaseMs);
    if (isOwner && this.clock.now() < this.#deadline) {
      this.#deadline = Math.max(this.#deadline, validUntil(sentAt, leaseMs));
    }
    return isOwner;
  }

  takenOver(): void {
    for (const holder of this.holders) holder.lose('foreignLost');
  }

  release(): Promise<boolean> {
    return this.claim.release(retentionSince(this.#heldSince, this.minHoldMs, this.clock.now())?.leftMs ?? 0);
  }

  refuseTransfer(): never {
    throw new InvalidLockOptionsError(
      `The lease of ${quoteResource(this.owner.resource)} cannot be transferred: it has ${this.name} too, which stays ` +
        'with this process. Release the lease, and let the job acquire the lock itself.',
      'alsoLock',
    );
  }
}
