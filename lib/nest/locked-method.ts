import { InterceptedCall } from './intercepted-call.js';
import { runLocked } from './lock-call.js';
import type { LockDecoration } from './lock-decoration.js';
import { declareLockService } from './lock-service-property.js';
import { type AsyncMethod, describeMethod, wrapMethod } from './method-wrapping.js';

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
 * Makes the decorator that runs a method under a lock.
 *
 * @param read checks the options and takes them apart, once for each method, which it may name in its errors
 */
export function lockMethod<A extends readonly unknown[]>(
  read: (where: string) => LockDecoration<A>,
): LockedMethodDecorator<A> {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const decoration = read(where);
    const lockServiceOf = declareLockService(target, decoration.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const resources = decoration.resources(this, args as unknown as A);
          const call = InterceptedCall.comingTo(handler, decoration);
          const work = (): unknown =>
            call ? call.pass(decoration, () => original.apply(this, args)) : original.apply(this, args);
          return call?.covers(decoration, resources) ? work() : runLocked(service, decoration, resources, work);
        },
    );
  };
}
