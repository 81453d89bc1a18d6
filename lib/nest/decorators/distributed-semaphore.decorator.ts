import type { AnyOnBusy } from './lock-plan.js';
import { lockMethod } from './locked-method.js';
import type { AnyResult, BusyResult, InferredOnBusy, LockedMethodDecorator } from './method-types.js';
import { readSemaphorePlan, type SemaphoreDecoratorOptions } from './semaphore-decorator-options.js';

/**
 * Runs at most `permits` calls of the method at once over all instances: acquires a permit, or several, renews them
 * while the method runs, and releases them.
 *
 * - `@DistributedSemaphore({ key: 'exports', permits: 3 })`
 * - ``@DistributedSemaphore({ key: (tenant: string) => `exports:${tenant}`, permits: 3, count: 2, onBusy: 'skip' })``
 *
 * The method's own errors pass through untouched. The lease is `locks.current()`.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the method is called, if the
 *   key function throws or does not return one valid name
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError when too few permits are free (see `onBusy`)
 * @throws LockModeMismatchError when other callers state another number of permits, or lock the resource
 * @throws LockReentryError when the caller already holds permits and would wait for itself
 * @throws LockModuleMissingError when Nest did not create the object
 */
export function DistributedSemaphore<
  A extends readonly unknown[] = [],
  S extends AnyOnBusy = never,
  const R extends AnyResult = never,
  O extends readonly unknown[] = A,
>(options: SemaphoreDecoratorOptions<A, InferredOnBusy<S, R, O>>): LockedMethodDecorator<A, BusyResult<S, R>, O> {
  return lockMethod('DistributedSemaphore', (where) => readSemaphorePlan(options, where));
}
