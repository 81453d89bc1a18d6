import type { ForeignClaim, ForeignLock, ForeignReply } from '../api/foreign-lock.js';
import type { LockOwner } from '../store/lock-store.js';
import type { Clock } from '../util/clock.js';
import { quote } from '../util/quoted.js';
import { type LocalHolder, type RenewalTrouble, type RenewedLease, retentionSince, validUntil } from './store-lease.js';

/**
 * The lock of another library that a hold has beside its own lock, and the deadline until which this process can trust
 * it. The claim promises that no renewal makes the lease shorter. So the deadline only moves forward.
 */
export class ForeignHold implements RenewedLease {
  /** The hold that has it beside its own lock. */
  holders: readonly LocalHolder[] = [];
  trouble: RenewalTrouble | undefined;
  /** How long the resource stays taken at least, counted from the grant; 0 for no minimum. */
  minHoldMs = 0;
  #deadline = -Infinity;
  #heldSince = 0;

  /** @param owner stands for its claim where releases are sent again */
  constructor(
    readonly owner: LockOwner,
    readonly lock: ForeignLock,
    readonly key: string,
    private readonly claim: ForeignClaim,
    private readonly clock: Clock,
  ) {}

  /** For messages. */
  get name(): string {
    return `the lock ${quote(this.key)} of ${this.lock.library} (alsoLock)`;
  }

  get renewal(): string {
    return `renew ${this.name} beside`;
  }

  /** The monotonic time after which an old process may hold it. */
  get deadline(): number {
    return this.#deadline;
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

  /** A confirmation after the deadline changes nothing: the lock is lost. @returns whether this process still has it */
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

  /** Why no command can be sent now; `undefined` if one can, or where that is not known. */
  describeTrouble(): string | undefined {
    return this.claim.describeTrouble?.();
  }

  /** Resolves when the lock may be free; `undefined` where the library does not tell its waiters. */
  whenFree(forMs: number, signal: AbortSignal): Promise<void> | undefined {
    return this.claim.whenFree?.(forMs, signal);
  }
}
