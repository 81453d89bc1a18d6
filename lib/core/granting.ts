import { LocalQueues } from './acquiring/local-queues.js';
import { LockNotHeldError } from './api/lease-errors.js';
import type { Lease } from './api/lease.js';
import type { ResolvedLockOptions } from './api/lock-options.js';
import type { LockContext } from './holding/lock-context.js';
import type { LeaseFactory } from './lease/lease-factory.js';
import type { SingleLease } from './lease/single-lease.js';
import type { Runtime } from './holding/runtime.js';

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
