import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import type { Lease, LockedWork } from '../../kernel/api/lease.js';
import type { AcquireMode } from '../../kernel/api/lock-options.js';
import { isWebResponse } from '../../kernel/api/work.js';
import { quote } from '../../kernel/util/quoted.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { InterceptedCall } from './intercepted-call.js';
import { hasMetadataOf, ON_CONTROLLERS, ON_GATEWAYS, ON_RESOLVERS } from './known-handlers.js';
import {
  type LockDecoratorOptions,
  type LockOnBusy,
  type LockPlan,
  readLockPlan,
  readSemaphorePlan,
  type ReadWriteLockOptions,
  type SemaphoreDecoratorOptions,
} from './lock-plan.js';
import type {
  AnyOnBusy,
  AnyResult,
  BusyResult,
  InferredOnBusy,
  KeyAlone,
  LockedMethodDecorator,
} from './method-types.js';
import {
  addLockedMethod,
  checkIsOnlyArgument,
  declareLockService,
  describeMethod,
  type LockedMethod,
  lockedMethodsOf,
  markAsSkipping,
  mayBeSkipped,
  wrapMethod,
} from './method.js';
import { refusalOfFirstCall } from './transaction-order.js';
import { LockBusyError } from '../../kernel/api/busy-errors.js';

/**
 * Runs the method on one instance at a time: acquires the lock, renews it while the method runs, and releases it.
 *
 * - `@DistributedLock('reports')`
 * - ``@DistributedLock((orderId: string) => key`order:${orderId}`)``
 * - ``@DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`], waitMs: 2_000 })``
 *
 * Errors that the method throws are passed on unchanged. `locks.current()` returns the lease, which ends with the
 * method. So a route that returns a stream or an Observable needs `@LockHandler`.
 *
 * Put it above `@Transactional()`: below, the lock would be released before the commit. The wrong order is rejected if
 * it can be detected: see docs/guide/with-transactions.md.
 *
 * @param keyOrOptions the name of the resource, several names, or a function of the parameters of the method that
 *   returns them; or options that include `key`
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the method is called, if the
 *   key function throws or returns no valid name, or if the result is an Observable, a stream or a generator
 * @throws LeaseLostError if the lease is lost before the method has ended (see `onLost`)
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError if the resource is not free (see `onBusy`)
 * @throws LockModuleMissingError if Nest did not create the object
 * @throws the other errors of `acquire`
 */
export function DistributedLock<
  A extends readonly unknown[] = [],
  S extends LockOnBusy = never,
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
 * Runs at most `permits` calls of the method at once across all instances: acquires one or more permits, renews them
 * while the method runs, and releases them.
 *
 * - `@DistributedSemaphore({ key: 'exports', permits: 3 })`
 * - ``@DistributedSemaphore({ key: (tenant: string) => `exports:${tenant}`, permits: 3, count: 2, onBusy: 'skip' })``
 *
 * Errors that the method throws are passed on unchanged. `locks.current()` returns the lease.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the method is called, if the
 *   key function throws or does not return one valid name
 * @throws LockBusyError, LockTimeoutError, LockQueueFullError if too few permits are free (see `onBusy`)
 * @throws LockModeMismatchError if other callers pass a different number of `permits`, or use the resource as a lock
 * @throws LeaseLostError if the lease is lost before the method has ended (see `onLost`)
 * @throws LockReentryError if the caller already holds permits and would wait for itself
 * @throws LockModuleMissingError if Nest did not create the object
 */
export function DistributedSemaphore<
  A extends readonly unknown[] = [],
  S extends AnyOnBusy = never,
  const R extends AnyResult = never,
  O extends readonly unknown[] = A,
>(options: SemaphoreDecoratorOptions<A, InferredOnBusy<S, R, O>>): LockedMethodDecorator<A, BusyResult<S, R>, O> {
  return lockMethod('DistributedSemaphore', (where) => readSemaphorePlan(options, where));
}

/**
 * The type of `@ReadLock` and `@WriteLock`. They take the options of `@DistributedLock`, except `mode` and
 * `cancellable`.
 */
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
 * Runs the method at the same time as other readers of the resource, but never at the same time as a writer:
 * `@DistributedLock` with `mode: 'read'`.
 *
 * - `@ReadLock('price-list')`
 * - ``@ReadLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })``
 *
 * @throws LockReentryError if the caller already holds the resource and would wait for itself
 * @throws the other errors of a method with `@DistributedLock`
 */
export const ReadLock = lockInMode('ReadLock', 'read');

/**
 * Runs the method while no other call reads or writes the resource: `@DistributedLock` with `mode: 'write'`. Inside the
 * method, calls to methods with `@ReadLock` or `@WriteLock` on the same resource don't wait.
 *
 * - `@WriteLock('price-list')`
 * - ``@WriteLock({ key: (orderId: string) => key`order:${orderId}`, waitMs: 2_000 })``
 *
 * @throws LockReentryError if the caller holds the resource for reading only
 * @throws the other errors of a method with `@DistributedLock`
 */
export const WriteLock = lockInMode('WriteLock', 'write');

/**
 * Makes a decorator that runs a method under a lock.
 *
 * @param read checks the options, once for each method; `where` is the method, for its errors
 */
function lockMethod<A extends readonly unknown[], B, O extends readonly unknown[]>(
  decorator: string,
  read: (where: string) => LockPlan<A>,
): LockedMethodDecorator<A, B, O> {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const plan = read(where);
    checkOtherLocks(target, propertyKey, where, plan);
    const lockServiceOf = declareLockService(target, plan.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    const skipping =
      plan.onBusy === 'throw'
        ? undefined
        : `@${decorator} with ${plan.onBusy === 'skip' ? "onBusy: 'skip'" : 'a function as onBusy'}`;
    /** Determined by the first call, when all decorators have been applied. */
    let isHandler: boolean | undefined;
    /** Determined by the first call, for the same reason: `null` allows the calls. */
    let refusal: Error | null | undefined;
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function locked(this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const resources = plan.resources(this, args as unknown as A);
          const call = InterceptedCall.comingTo(handler, plan);
          const work = (): unknown =>
            call ? call.pass(plan, () => original.apply(this, args)) : original.apply(this, args);
          if (call?.covers(plan, resources)) return work();
          if (refusal === undefined) refusal = refusalOfFirstCall(service, target, method, locked) ?? null;
          if (refusal !== null) throw refusal;
          let begin = work;
          if (skipping !== undefined) {
            const runs = mayBeSkipped(this, target, propertyKey, skipping);
            begin = () => {
              runs();
              return work();
            };
          }
          const result = await runLocked(service, plan, resources, begin, this, args);
          isHandler ??= hasMetadataOf(
            (this as Record<string | symbol, object>)[propertyKey] ?? original,
            SENDING_HANDLERS,
          );
          if (isHandler && isWebResponse(result)) throw refuseResponse(where);
          return result;
        },
    );
    if (plan.onBusy === 'skip') markAsSkipping(descriptor.value as object, skipping!);
    const wrapped = descriptor.value as LockedMethod['wrapped'];
    const method: LockedMethod = { ...plan, name: propertyKey, where, decorator: `@${decorator}`, wrapped };
    addLockedMethod(target, method);
  };
}

/** @throws InvalidLockOptionsError if each call would wait for a lock that a decorator below already holds */
function checkOtherLocks(
  target: object,
  propertyKey: string | symbol,
  where: string,
  { fixed = [], mode, lockService }: LockPlan<never>,
): void {
  if (mode !== 'exclusive') return;
  for (const other of lockedMethodsOf(target)) {
    if (other.name !== propertyKey || other.mode !== 'exclusive' || other.lockService !== lockService) continue;
    const shared = other.fixed?.find((resource) => fixed.includes(resource));
    if (shared === undefined) continue;
    throw new InvalidLockOptionsError(
      `${where} is locked by ${quote(shared)} twice, so each call would wait for itself. Remove one of the two decorators.`,
      'key',
    );
  }
}

/** Handlers whose result Nest sends to the client. */
const SENDING_HANDLERS = [...ON_CONTROLLERS, ...ON_GATEWAYS, ...ON_RESOLVERS];

/** The error for a response whose body would be sent without the lock. */
function refuseResponse(where: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `${where} returned a Response, whose body Nest would send after the lock is released. Use @LockHandler, which holds ` +
      'the lock until everything is sent, or return a complete result.',
    'decorator',
  );
}

/**
 * Does the work under the lock of a plan. An error of the work passes through untouched, even a busy error of its own.
 *
 * @param self `this` of the functions among the options
 * @param args their last arguments
 * @param signal ends the wait for the lock
 */
export async function runLocked<T>(
  service: RedisLockService,
  plan: Pick<LockPlan<never>, 'onBusy' | 'using'>,
  resources: readonly string[],
  work: LockedWork<T>,
  self: unknown,
  args: readonly unknown[],
  signal?: AbortSignal,
): Promise<T> {
  let began = false;
  const underLease = (lease: Lease): T | Promise<T> => {
    began = true;
    return work(lease);
  };
  try {
    return await plan.using(service, resources, underLease, { self, args, signal });
  } catch (error) {
    if (began || plan.onBusy === 'throw') throw error;
    if (!(error instanceof LockBusyError)) throw error;
    if (plan.onBusy === 'skip') return undefined as T;
    const onBusy = plan.onBusy as (this: unknown, busy: LockBusyError, ...args: readonly unknown[]) => T | Promise<T>;
    return await onBusy.call(self, error, ...args);
  }
}
