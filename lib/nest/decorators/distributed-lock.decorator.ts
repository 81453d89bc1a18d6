import type { ResourceNames } from '../../core/api/resource.js';
import { type LockDecoratorOptions, readLockPlan } from './lock-plan.js';
import { type LockedMethodDecorator, lockMethod } from './locked-method.js';

/** What `@DistributedLock` takes in place of a key. `A`: the parameters of the method. */
export type DistributedLockOptions<A extends readonly unknown[] = []> = LockDecoratorOptions<A>;

/**
 * Runs the method on one instance at a time: acquires, renews while it runs, and releases.
 *
 * ```ts
 * @DistributedLock('reports')
 * @DistributedLock((orderId: string) => key`order:${orderId}`)
 * @DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`], waitMs: 2_000 })
 * ```
 *
 * The method's own errors pass through untouched. Its lease is `locks.current()`, and ends with the method: a route that returns
 * a stream or an Observable needs `@LockHandler`.
 *
 * It goes above `@Transactional()`: below it, the lock is released before the commit.
 *
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right; a call throws it when the
 *   key function throws or gives no usable name, or where the result of a handler is a stream
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError when the resource is not free (see `onBusy`), and the other
 *   errors of `acquire`
 * @throws LockModuleMissingError when the object was not made by Nest
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
