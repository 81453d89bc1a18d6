import { callSiteOf, type Origin, recordOrigin } from '../../core/util/call-site.js';
import type { Lease } from '../../core/api/lease.js';
import type { RedisLockService } from '../../nest/redis-lock.service.js';

type Method = (...args: never[]) => unknown;

/** Remembers where a test or its application acquires leases that it has to release itself. */
export class AcquireSites {
  readonly #origins = new Map<string, Origin>();

  /** Stands around these methods of the service from now on. */
  constructor(service: RedisLockService) {
    this.#follow(service, 'acquire', 'tryAcquire', 'adopt');
    const { semaphore } = service;
    service.semaphore = (...args) => {
      const made = semaphore.apply(service, args);
      this.#follow(made, 'acquire', 'tryAcquire');
      return made;
    };
  }

  of(resource: string, fencingToken: number): string | undefined {
    return callSiteOf(this.#origins.get(keyOf(resource, fencingToken)));
  }

  #follow(object: object, ...names: string[]): void {
    const methods = object as Record<string, Method>;
    for (const name of names) {
      const original = methods[name]!;
      const followed = (...args: never[]): unknown => {
        const origin = recordOrigin(followed);
        const lease = original.apply(object, args) as Promise<Lease | null>;
        lease.then(
          (taken) => taken && this.#note(taken, origin),
          () => {},
        );
        return lease;
      };
      methods[name] = followed;
    }
  }

  #note(lease: Lease, origin: Origin): void {
    for (const resource of lease.resources) {
      this.#origins.set(keyOf(resource, lease.fencingTokenOf(resource)), origin);
    }
  }
}

function keyOf(resource: string, fencingToken: number): string {
  return `${fencingToken} ${resource}`;
}
