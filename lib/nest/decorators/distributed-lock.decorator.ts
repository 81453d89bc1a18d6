import type { ResourceNames } from '../../core/api/resource.js';
import { type LockDecoratorOptions, readLockPlan } from './lock-plan.js';
import { type LockedMethodDecorator, lockMethod } from './locked-method.js';

/** What `@DistributedLock` takes in place of a key. `A`: the parameters of the method. */
export type DistributedLockOptions<A extends readonly unknown[] = []> = LockDecoratorOptions<A>;

/**
 * Runs the method on one instance at a time: acquires the lock, renews it while the method runs, and releases it.
 *
 * ```ts
 * @DistributedLock('reports')
 * @DistributedLock((orderId: string) => key`order:${orderId}`)
 * @DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`], waitMs: 2_000 })
 * ```
 *
 * The method's own errors pass through untouched. The lease is `locks.current()` and ends with the method, so a route
 * that returns a stream or an Observable needs `@LockHandler`.
 *
 * Put it above `@Transactional()`: below, the lock would be released before the commit.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the method is called, if the
 *   key function throws or returns no valid name, or if the result of a handler is a stream
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError when the resource is not free (see `onBusy`)
 * @throws LockModuleMissingError when Nest did not create the object
 * @throws the other errors of `acquire`
 */
export function DistributedLock(key: ResourceNames): LockedMethodDecorator<[]>;
export function DistributedLock<A extends readonly unknown[]>(
  key: (...args: A) => ResourceNames,
): LockedMethodDecorator<A>;
export function DistributedLock<A extends readonly unknown[] = []>(
  options: DistributedLockOptions<A>,
): LockedMethodDecorator<A>;
export function DistributedLock<A extends readonly unknown[]>(
  given: LockDecoratorOptions<A>['key'] | LockDecoratorOptions<A>,
): LockedMethodDecorator<A> {
  return lockMethod((where) => readLockPlan(given, where));
}
