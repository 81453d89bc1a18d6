import type { ResourceNames } from '../core/resource.js';
import { isLockedByInterceptor } from './handler-leases.js';
import { runLocked } from './lock-call.js';
import { type LockDecoratorOptions, readLockDecoration } from './lock-decorator-options.js';
import { declareLockService } from './lock-service-property.js';
import { type AsyncMethod, describeMethod, wrapMethod } from './method-wrapping.js';

/** What `@DistributedLock` takes in place of a key. `A`: the parameters of the method. */
export type DistributedLockOptions<A extends readonly unknown[] = []> = LockDecoratorOptions<A>;

/**
 * Decorates an async method whose parameters fit the key function's. A method that is not async, or whose parameters do
 * not fit, is an error at compile time.
 */
export interface LockedMethodDecorator<A extends readonly unknown[]> {
  // For parameters whose types are parameters of the class: what KeyFits is of those, TypeScript does not find out.
  <P extends readonly [...A, ...unknown[]], R>(
    target: object,
    propertyKey: string | symbol,
    // An open end is what P becomes where the method's own parameters do not fit.
    descriptor: TypedPropertyDescriptor<(...args: P) => Promise<R>> & (number extends P['length'] ? never : unknown),
  ): void;
  // For every other method, generic ones too.
  <M extends AsyncMethod>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & KeyFits<A, M>,
  ): void;
}

/** Nothing where the key function can be called with the method's parameters; otherwise a type that explains. */
type KeyFits<A extends readonly unknown[], M extends AsyncMethod> = ((...args: A) => void) extends (
  ...args: Parameters<M>
) => void
  ? unknown
  : { 'The parameters of the key function must be those of the method': Parameters<M> };

/**
 * Runs the method on one instance at a time: acquires, renews while it runs, and releases.
 *
 * ```ts
 * @DistributedLock('reports')
 * @DistributedLock((orderId: string) => `order:${orderId}`)
 * @DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`], waitMs: 2_000 })
 * ```
 *
 * The method's own errors pass through untouched. Its lease is `locks.current()`.
 *
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right; a call throws it when the
 *   key function throws or gives no usable name
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
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const decoration = readLockDecoration(given, where);
    const lockServiceOf = declareLockService(target, decoration.lockService);
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const resources = decoration.resources(this, args as unknown as A);
          const handler = { type: this.constructor, name: String(propertyKey) };
          if (isLockedByInterceptor(service, resources, handler)) return original.apply(this, args);
          return runLocked(service, decoration, resources, decoration.lockOptions, () => original.apply(this, args));
        },
    );
  };
}
