import { LocalQueues } from '../../core/acquiring/local-queues.js';
import type { Lease } from '../../core/api/lease.js';
import type { ResolvedLockOptions } from '../../core/api/lock-options.js';
import type { Granting } from '../../core/granting.js';
import type { Grant } from '../../core/holding/hold.js';
import type { LockContext } from '../../core/holding/lock-context.js';
import { StoreLease } from '../../core/holding/store-lease.js';
import type { LeaseFactory } from '../../core/lease/lease-factory.js';
import type { SingleLease } from '../../core/lease/single-lease.js';
import { createOwner } from '../../core/store/owner-id.js';
import type { Runtime } from '../../core/holding/runtime.js';
import { NO_CHANCE, STANDING_CLOCK } from './pass-through-clock.js';
import type { PassThroughStore } from './pass-through-store.js';

/** The resource of the lease that `currentOrThrow()` returns outside of any lock. */
const ASSUMED = 'unit-test';

/** Lets every call pass: nothing is busy, and no call waits. */
export class PassThroughGranting implements Granting {
  readonly #assumed = new Map<string, Lease>();

  /** @param plainOptions of a lease that no call has asked for */
  constructor(
    private readonly store: PassThroughStore,
    private readonly plainOptions: ResolvedLockOptions,
  ) {}

  queues(runtime: Runtime): LocalQueues {
    return new PassThroughQueues(runtime);
  }

  /** Leads at once. */
  lead(resource: string, options: ResolvedLockOptions, leases: LeaseFactory): SingleLease {
    return this.#pass(resource, options, leases);
  }

  leaseFor(resource = ASSUMED, _context: LockContext, leases: LeaseFactory): Lease {
    const standing = this.#assumed.get(resource);
    if (standing?.isHeld()) return standing;
    const lease = this.#pass(resource, this.plainOptions, leases, true);
    this.#assumed.set(resource, lease);
    return lease;
  }

  #pass(resource: string, options: ResolvedLockOptions, leases: LeaseFactory, isAssumed = false): SingleLease {
    const owner = createOwner(resource, options, { store: this.store, random: NO_CHANCE });
    const now = STANDING_CLOCK.now();
    const token = this.store.grant(owner, isAssumed);
    const storeLease = new StoreLease(owner, token, now, options, STANDING_CLOCK, now);
    return leases.hold({ storeLease, attempts: 1, waitedMs: 0, grantedAt: now }, options);
  }
}

/** In a queue, a call would wait for the calls before it. */
class PassThroughQueues extends LocalQueues {
  override acquire<T>(
    resource: string,
    options: ResolvedLockOptions,
    take: (grant: Grant) => T | Promise<T>,
  ): Promise<T> {
    return this.polling.acquire(resource, options, take);
  }
}
