import { type LockOptions, resolveLockOptions } from './api/lock-options.js';
import { checkResource } from './api/resource.js';
import type { LocalHolder } from './holding/store-lease.js';
import type { LeaseDeps } from './lease/lease-deps.js';
import type { LeaseFactory } from './lease/lease-factory.js';
import type { SingleLease } from './lease/single-lease.js';

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

  /** Acquires any resource, also that of a leadership or of a job: in a test, another application has it. */
  acquire(resource: string, options: LockOptions): Promise<SingleLease> {
    return this.leases.acquireOne(checkResource(resource, 'acquire'), resolveLockOptions(options, this.deps.defaults));
  }
}
