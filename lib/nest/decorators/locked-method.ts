import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { InterceptedCall } from '../request/intercepted-call.js';
import { hasMetadataOf, ON_CONTROLLERS, ON_GATEWAYS } from '../request/known-handlers.js';
import { runLocked } from './lock-call.js';
import type { LockPlan } from './lock-plan.js';
import { type AsyncMethod, declareLockService, describeMethod, wrapMethod } from './method.js';
import { describeStream, endStream, isStreamedResult } from '../request/streamed-result.js';

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
  read: (where: string) => LockPlan<A>,
): LockedMethodDecorator<A> {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const plan = read(where);
    const lockServiceOf = declareLockService(target, plan.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    /** Known at the first call: by then all decorators have been there. */
    let isHandler: boolean | undefined;
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const resources = plan.resources(this, args as unknown as A);
          const call = InterceptedCall.comingTo(handler, plan);
          const work = (): unknown =>
            call ? call.pass(plan, () => original.apply(this, args)) : original.apply(this, args);
          if (call?.covers(plan, resources)) return work();
          const result = await runLocked(service, plan, resources, work);
          isHandler ??= hasMetadataOf(
            (this as Record<string | symbol, object>)[propertyKey] ?? original,
            SENDING_HANDLERS,
          );
          if (isHandler && isStreamedResult(result)) throw refuseStream(result, where);
          return result;
        },
    );
  };
}

/** Handlers whose result Nest sends, bit by bit where it is a stream. */
const SENDING_HANDLERS = [...ON_CONTROLLERS, ...ON_GATEWAYS];

/** What is sent under no lock any more would look as if it were. */
function refuseStream(result: object, where: string): InvalidLockOptionsError {
  endStream(result);
  return new InvalidLockOptionsError(
    `${where} returned ${describeStream(result)}, which would be sent after its lock is released: the lock of a method ends ` +
      `with the method. Use @LockHandler, which holds the lock until all is sent, or return what is complete.`,
    'decorator',
  );
}
