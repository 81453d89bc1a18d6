import type { RedisLockService } from '../../nest/redis-lock.service.js';
import { AcquireSites } from './acquire-sites.js';
import { type ExclusiveOptions, expectExclusive, type Section } from './exclusive.js';
import { expectHeldDuring, type HeldDuringOptions } from './held-during.js';
import type { LocksUnderTest } from './locks-under-test.js';
import { expectNotHeld, expectNothingHeld } from './not-held.js';

/** What a test expects of the locks of an application. Each method throws an `AssertionError` of `node:assert`. */
export class LockAssertions {
  readonly #locks: LocksUnderTest;

  constructor(service: RedisLockService, seen: Pick<LocksUnderTest, 'instanceId' | 'states' | 'unmetFailures'>) {
    const sites = new AcquireSites(service);
    this.#locks = {
      instanceId: seen.instanceId,
      states: () => seen.states(),
      unmetFailures: () => seen.unmetFailures(),
      observe: (observer) => service.observe(observer),
      callSiteOf: (resource, fencingToken) => sites.of(resource, fencingToken),
    };
  }

  /**
   * Does the work, and checks that the application held the resource all the while. The work must acquire it.
   *
   * ```ts
   * const paid = await locks.expectHeldDuring('order:7', () => shop.pay('7'));
   * await locks.expectHeldDuring('order:7', () => http.post('/orders/7/pay'), { touching: orders });
   * ```
   *
   * Without `touching`, the lock is the first and the last thing that the work waits for: the work must ask for it
   * before the event loop turns, may not release it in between, and must end before the event loop turns again. Steps
   * that wait for nothing but settled promises are not seen. With `touching`, each method call on these objects must
   * begin and end under the lock.
   *
   * @returns what the work returned
   * @throws AssertionError when it was not held; the message tells what happened to the locks
   * @throws the error of the work
   */
  expectHeldDuring<T>(resource: string, work: () => T | Promise<T>, options?: HeldDuringOptions): Promise<T> {
    return expectHeldDuring(this.#locks, resource, work, options);
  }

  /**
   * Checks that no application of the fleet holds the resource.
   *
   * @throws AssertionError that names the holders, and where the lease was acquired
   */
  expectNotHeld(resource: string): Promise<void> {
    return expectNotHeld(this.#locks, resource);
  }

  /**
   * Checks that no application of the fleet holds anything, and that each failure of `failNext` has met a command, for
   * `afterEach`. A leadership does not count, because a campaign leads as long as its application runs.
   *
   * @throws AssertionError that names each lease, and where it was acquired, and each failure that met no command
   */
  expectNothingHeld(): Promise<void> {
    return expectNothingHeld(this.#locks);
  }

  /**
   * Runs a function several times at once, and checks that one run at a time was inside, and that the runs competed for
   * a lock. What the lock protects is named by `touching`, or the function calls `section` where it is inside.
   *
   * ```ts
   * await locks.expectExclusive(() => shop.pay('7'), { times: 3, touching: orders });
   * await locks.expectExclusive((section) => service.using('report', () => section()));
   * ```
   *
   * A run that does not get the lock (`LockBusyError`) or is skipped has been excluded, as it should
   * be. With `touching`, a run is inside from its first call of a method to its last one.
   *
   * @param run is called with `section` and the index of the run
   * @returns how each run ended
   * @throws AssertionError when two runs were inside at once, none was inside, or none had to wait
   * @throws the error of a run
   */
  expectExclusive<T>(
    run: (section: Section, index: number) => T | Promise<T>,
    options?: ExclusiveOptions,
  ): Promise<PromiseSettledResult<T>[]> {
    return expectExclusive(this.#locks, run, options);
  }
}
