import { type LockedMethodDecorator, lockMethod } from './locked-method.js';
import { readSemaphorePlan, type SemaphoreDecoratorOptions } from './semaphore-decorator-options.js';

/** What `@DistributedSemaphore` takes. `A`: the parameters of the method. */
export type DistributedSemaphoreOptions<A extends readonly unknown[] = []> = SemaphoreDecoratorOptions<A>;

/**
 * Runs at most so many calls of the method at once, over all instances: acquires a permit, or several, renews while it runs,
 * and releases.
 *
 * ```ts
 * @DistributedSemaphore({ key: 'exports', permits: 3 })
 * @DistributedSemaphore({ key: (tenant: string) => `exports:${tenant}`, permits: 3, count: 2, onBusy: 'skip' })
 * ```
 *
 * The method's own errors pass through untouched. Its lease is `locks.current()`.
 *
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right; a call throws it when the
 *   key function throws or does not give one usable name
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError when too few permits are free (see `onBusy`)
 * @throws LockModeMismatchError when others state another number of permits, or lock the resource
 * @throws LockReentryError when the caller holds permits already and would wait for itself
 * @throws LockModuleMissingError when the object was not made by Nest
 */
export function DistributedSemaphore<A extends readonly unknown[] = []>(
  options: DistributedSemaphoreOptions<A>,
): LockedMethodDecorator<A> {
  return lockMethod((where) => readSemaphorePlan(options, where));
}
