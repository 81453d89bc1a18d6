import type { ResourceNames } from '../../core/api/resource.js';
import { readLockPlan, type ReadWriteLockOptions } from './lock-plan.js';
import { type LockedMethodDecorator, lockMethod } from './locked-method.js';

/** Takes what `@DistributedLock` takes, but for the mode. */
export interface ReadWriteLockDecorator {
  (key: ResourceNames): LockedMethodDecorator<[]>;
  <A extends readonly unknown[]>(key: (...args: A) => ResourceNames): LockedMethodDecorator<A>;
  <A extends readonly unknown[] = []>(options: ReadWriteLockOptions<A>): LockedMethodDecorator<A>;
}

/**
 * Runs the method beside others that read the resource, and never beside one that writes it: `@DistributedLock` with
 * `mode: 'read'`.
 *
 * ```ts
 * @ReadLock('price-list')
 * @ReadLock((orderId: string) => key`order:${orderId}`)
 * @ReadLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })
 * ```
 *
 * @throws LockReentryError, and the other errors of a method with `@DistributedLock`
 */
export const ReadLock: ReadWriteLockDecorator = <A extends readonly unknown[]>(
  given: ReadWriteLockOptions<A>['key'] | ReadWriteLockOptions<A>,
) => lockMethod<A>((where) => readLockPlan(given, where, 'read'));

/**
 * Runs the method alone: beside nobody who reads or writes the resource. `@DistributedLock` with `mode: 'write'`. It may call
 * others that read or write it.
 *
 * ```ts
 * @WriteLock('price-list')
 * @WriteLock((orderId: string) => key`order:${orderId}`)
 * @WriteLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })
 * ```
 *
 * @throws LockReentryError where it is called by one that reads the resource, and the other errors of a method with
 *   `@DistributedLock`
 */
export const WriteLock: ReadWriteLockDecorator = <A extends readonly unknown[]>(
  given: ReadWriteLockOptions<A>['key'] | ReadWriteLockOptions<A>,
) => lockMethod<A>((where) => readLockPlan(given, where, 'write'));
