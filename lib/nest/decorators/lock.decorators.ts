import {
  type AnyOnBusy,
  type KeyAlone,
  type LockDecoratorOptions,
  readLockPlan,
  type ReadWriteLockOptions,
} from './lock-plan.js';
import { checkIsOnlyArgument, lockMethod } from './locked-method.js';
import type { AnyResult, BusyResult, InferredOnBusy, LockedMethodDecorator } from './method-types.js';
import { readSemaphorePlan, type SemaphoreDecoratorOptions } from './semaphore-decorator-options.js';
import type { AcquireMode } from '../../core/api/lock-options.js';

/**
 * Runs the method on one instance at a time: acquires the lock, renews it while the method runs, and releases it.
 *
 * - `@DistributedLock('reports')`
 * - ``@DistributedLock((orderId: string) => key`order:${orderId}`)``
 * - ``@DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`], waitMs: 2_000 })``
 *
 * The method's own errors pass through untouched. The lease is `locks.current()` and ends with the method, so a route
 * that returns a stream or an Observable needs `@LockHandler`.
 *
 * Put it above `@Transactional()`: below, the lock would be released before the commit. Where that is recognized, it is
 * refused: see docs/guide/with-transactions.md.
 *
 * @param keyOrOptions the name of the resource, several names, or a function of the parameters of the method that returns
 *   them; or options, of which `key` is one
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the method is called, if the
 *   key function throws or returns no valid name, or if the result of a handler is a stream
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError when the resource is not free (see `onBusy`)
 * @throws LockModuleMissingError when Nest did not create the object
 * @throws the other errors of `acquire`
 */
export function DistributedLock<
  A extends readonly unknown[] = [],
  S extends AnyOnBusy = never,
  const R extends AnyResult = never,
  O extends readonly unknown[] = A,
>(
  keyOrOptions: KeyAlone<A> | LockDecoratorOptions<A, InferredOnBusy<S, R, O>>,
): LockedMethodDecorator<A, BusyResult<S, R>, O>;
export function DistributedLock(...given: readonly unknown[]): unknown {
  checkIsOnlyArgument('DistributedLock', given);
  const [keyOrOptions] = given as [LockDecoratorOptions<[]>];
  return lockMethod('DistributedLock', (where) => readLockPlan(keyOrOptions, where));
}

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
