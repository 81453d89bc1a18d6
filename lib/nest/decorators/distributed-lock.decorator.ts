import { type AnyOnBusy, type KeyAlone, type LockDecoratorOptions, readLockPlan } from './lock-plan.js';
import { checkIsOnlyArgument, lockMethod } from './locked-method.js';
import type { AnyResult, BusyResult, InferredOnBusy, LockedMethodDecorator } from './method-types.js';

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
