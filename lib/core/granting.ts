import { LocalQueues } from './acquiring/local-queues.js';
import { LockNotHeldError } from './api/lease-errors.js';
import type { Lease } from './api/lease.js';
import { type LockOptions, type ResolvedLockOptions, resolveLockOptions } from './api/lock-options.js';
import type { LockOrderEdge } from './events/events.js';
import type { LockContext } from './holding/lock-context.js';
import type { LeaseFactory } from './lease/lease-factory.js';
import type { SingleLease } from './lease/single-lease.js';
import type { Runtime } from './holding/runtime.js';
import { checkResource } from './api/resource.js';
import type { LocalHolder } from './holding/store-lease.js';
import type { LeaseDeps } from './lease/lease-deps.js';

/** How a lock client grants resources: chosen when the client is made, so that no call asks which way it is. */
export interface Granting {
  /** What decides which call of this process gets which resource. */
  queues(runtime: Runtime): LocalQueues;
  /** Acquires the resource of a leadership. */
  lead(resource: string, options: ResolvedLockOptions, leases: LeaseFactory): SingleLease | Promise<SingleLease>;
  /**
   * The lease of a caller that needs one and has taken none.
   *
   * @param resource `undefined` for any
   * @throws LockNotHeldError
   */
  leaseFor(resource: string | undefined, context: LockContext, leases: LeaseFactory): Lease;
}

/** The store grants a resource to one call at a time. */
export const GRANTED_BY_STORE: Granting = {
  queues: (runtime) => new LocalQueues(runtime),
  lead: (resource, options, leases) => leases.acquireOne(resource, options),
  leaseFor(resource, context) {
    throw new LockNotHeldError(resource, context.resources());
  },
};

/** What a test sees of a lock client, and does with it, that no application does. */
export class ClientUnderTest {
  constructor(
    private readonly deps: LeaseDeps,
    private readonly leases: LeaseFactory,
  ) {}

  /** What holds a resource in this process. Looks at every lease. */
  holdersOf(resource: string): readonly LocalHolder[] {
    return this.deps.watchdog.holdersOf(resource);
  }

  /** How many releases have no answer yet, also where no caller waits for one. Looks at every lease. */
  countReleasing(): number {
    const { active, orphanReleases } = this.deps;
    const ending = active.list().filter((hold) => hold.isReleased).length;
    return ending + orphanReleases.size;
  }

  /** @param told of orders of locks that make a circle; what it throws, the call throws that has closed it */
  onLockOrder(told: (edges: readonly LockOrderEdge[]) => void): void {
    this.deps.lockOrder.onCircle = told;
  }

  /** Acquires any resource, also that of a leadership or of a job: in a test, another application has it. */
  acquire(resource: string, options: LockOptions): Promise<SingleLease> {
    return this.leases.acquireOne(checkResource(resource, 'acquire'), resolveLockOptions(options, this.deps.defaults));
  }
}
