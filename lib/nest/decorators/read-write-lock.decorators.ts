import type { ResourceNames } from '../../core/api/resource.js';
import { readLockPlan, type ReadWriteLockOptions } from './lock-plan.js';
import { type LockedMethodDecorator, lockMethod } from './locked-method.js';

/** Takes the options of `@DistributedLock` except `mode`. */
export interface ReadWriteLockDecorator {
  (key: ResourceNames): LockedMethodDecorator<[]>;
  <A extends readonly unknown[]>(key: (...args: A) => ResourceNames): LockedMethodDecorator<A>;
  <A extends readonly unknown[] = []>(options: ReadWriteLockOptions<A>): LockedMethodDecorator<A>;
}

/**
 * Runs the method at the same time as other readers of the resource, but never at the same time as a writer. The same
 * as `@DistributedLock` with `mode: 'read'`.
 *
 * ```ts
 * @ReadLock('price-list')
 * @ReadLock((orderId: string) => key`order:${orderId}`)
 * @ReadLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })
 * ```
 *
 * @throws LockReentryError when the caller already holds the resource and would wait for itself
 * @throws the other errors of a method with `@DistributedLock`
 */
export const ReadLock: ReadWriteLockDecorator = <A extends readonly unknown[]>(
  given: ReadWriteLockOptions<A>['key'] | ReadWriteLockOptions<A>,
) => lockMethod<A>((where) => readLockPlan(given, where, 'read'));

/**
 * Runs the method when no other caller reads or writes the resource. The same as `@DistributedLock` with `mode:
 * 'write'`. The method may call others that read or write the resource.
 *
 * ```ts
 * @WriteLock('price-list')
 * @WriteLock((orderId: string) => key`order:${orderId}`)
 * @WriteLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })
 * ```
 *
 * @throws LockReentryError when a method that reads the resource calls it
 * @throws the other errors of a method with `@DistributedLock`
 */
export const WriteLock: ReadWriteLockDecorator = <A extends readonly unknown[]>(
  given: ReadWriteLockOptions<A>['key'] | ReadWriteLockOptions<A>,
) => lockMethod<A>((where) => readLockPlan(given, where, 'write'));
