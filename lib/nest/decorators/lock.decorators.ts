import {
  type AnyOnBusy,
  DECORATOR_OPTIONS,
  type DecoratorOptions,
  type KeyAlone,
  type LockDecoratorOptions,
  type LockPlan,
  type OnBusy,
  readKey,
  readLockPlan,
  type ReadWriteLockOptions,
  resolveDecoratorOptions,
  waitMsOf,
} from './lock-plan.js';
import { checkIsOnlyArgument, lockMethod } from './locked-method.js';
import type { AnyResult, BusyResult, InferredOnBusy, LockedMethodDecorator } from './method-types.js';
import { type AcquireMode, checkMinHold } from '../../core/api/lock-options.js';
import { type OptionsOf, OptionTable, without } from '../../core/api/validation.js';
import { checkOwnResource, groupNamed } from '../../core/api/resource.js';
import {
  checkPermits,
  PERMIT_OPTIONS,
  type PermitOptions,
  readCount,
  SEMAPHORE_OPTIONS,
} from '../../core/semaphore/semaphore-options.js';

/**
 * What `@DistributedSemaphore` takes, and `@LockHandler` too. `A` is what the key function is called with, and `B` the
 * value of `onBusy`.
 */
export interface SemaphoreDecoratorOptions<A extends readonly unknown[] = [], B extends AnyOnBusy = OnBusy<A>>
  extends DecoratorOptions<B>, Omit<PermitOptions, 'signal'> {
  /**
   * The name of the semaphore, or a function that returns it. The function is called with the arguments of the
   * method, in `@LockHandler` with the `ExecutionContext` before the pipes. Its `this` is the object of the method,
   * which `@LockHandler` does not know.
   *
   * @allowed a name, or a function that returns one
   */
  key: string | ((...args: A) => string);
  /** How many permits the whole fleet has. Every caller must state the same number. @allowed 1 to 1000000 */
  permits: number;
}

export const SEMAPHORE_DECORATOR_OPTIONS = new OptionTable({
  ...DECORATOR_OPTIONS.options,
  ...SEMAPHORE_OPTIONS.options,
  ...without(PERMIT_OPTIONS.options, 'signal'),
} satisfies OptionsOf<SemaphoreDecoratorOptions<never, AnyOnBusy>>);

/**
 * Checks the options of a decorator, once, when the class is defined.
 *
 * @param where the decorated method, for messages
 * @throws InvalidLockOptionsError
 */
export function readSemaphorePlan<A extends readonly unknown[]>(
  options: SemaphoreDecoratorOptions<A, AnyOnBusy>,
  where: string,
): LockPlan<A> {
  SEMAPHORE_DECORATOR_OPTIONS.check(`The semaphore of ${where}`, options);
  checkMinHold(options);
  const { key, permits, onBusy, onLost, service: lockService, ...rest } = options;
  const total = checkPermits(permits, `the semaphore of ${where}`);
  const count = readCount(rest, total);
  const resolved = resolveDecoratorOptions({ onBusy, onLost, service: lockService });
  const waitMs = waitMsOf(resolved.onBusy, rest);
  const group = groupNamed(rest.group ?? where);
  const permitOptions: PermitOptions = { ...rest, ...(waitMs !== undefined && { waitMs }), group };
  return {
    ...resolved,
    group,
    ignoresTransaction: rest.ignoreTransaction === true,
    minHoldMs: rest.minHoldMs ?? 0,
    mode: 'semaphore',
    permits: { count, total },
    resources: readKey(key, where, (name, source) => [checkOwnResource(name, source)]),
    using: (service, [resource], work, signal) =>
      service
        .semaphore(resource!, { permits: total })
        .using(signal ? { ...permitOptions, signal } : permitOptions, work),
  };
}

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
