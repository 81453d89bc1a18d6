import type { AcquireMode } from '../../core/api/lock-options.js';
import { type AnyOnBusy, type KeyAlone, readLockPlan, type ReadWriteLockOptions } from './lock-plan.js';
import { checkIsOnlyArgument, lockMethod } from './locked-method.js';
import type { AnyResult, BusyResult, InferredOnBusy, LockedMethodDecorator } from './method-types.js';

/** Takes the options of `@DistributedLock` except `mode`. */
export type ReadWriteLockDecorator = <
  A extends readonly unknown[] = [],
  S extends AnyOnBusy = never,
  const R extends AnyResult = never,
  O extends readonly unknown[] = A,
>(
  keyOrOptions: KeyAlone<A> | ReadWriteLockOptions<A, InferredOnBusy<S, R, O>>,
) => LockedMethodDecorator<A, BusyResult<S, R>, O>;

const lockInMode =
  (decorator: string, mode: AcquireMode): ReadWriteLockDecorator =>
  (...given) => {
    checkIsOnlyArgument(decorator, given);
    return lockMethod(decorator, (where) => readLockPlan(given[0], where, mode));
  };

/**
 * Runs the method at the same time as other readers of the resource, but never at the same time as a writer. The same
 * as `@DistributedLock` with `mode: 'read'`.
 *
 * - `@ReadLock('price-list')`
 * - ``@ReadLock((orderId: string) => key`order:${orderId}`)``
 * - ``@ReadLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })``
 *
 * @throws LockReentryError when the caller already holds the resource and would wait for itself
 * @throws the other errors of a method with `@DistributedLock`
 */
export const ReadLock = lockInMode('ReadLock', 'read');

/**
 * Runs the method when no other caller reads or writes the resource. The same as `@DistributedLock` with `mode:
 * 'write'`. The method may call others that read or write the resource.
 *
 * - `@WriteLock('price-list')`
 * - ``@WriteLock((orderId: string) => key`order:${orderId}`)``
 * - ``@WriteLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })``
 *
 * @throws LockReentryError when a method that reads the resource calls it
 * @throws the other errors of a method with `@DistributedLock`
 */
export const WriteLock = lockInMode('WriteLock', 'write');
