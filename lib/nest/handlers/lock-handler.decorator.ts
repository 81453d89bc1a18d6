import { type ExecutionContext, UseInterceptors } from '@nestjs/common';
import 'reflect-metadata';
import type { ResourceNames } from '../../core/api/resource.js';
import { addHandlerLock } from './handler-locks.js';
import { InterceptedCall } from '../request/intercepted-call.js';
import { type LockDecoratorOptions, type LockPlan, readLockPlan } from '../decorators/lock-plan.js';
import { isLockInterceptor, lockInterceptorFor } from './lock.interceptor.js';
import { declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';
import { readSemaphorePlan, type SemaphoreDecoratorOptions } from '../decorators/semaphore-decorator-options.js';

/** What `@LockHandler` takes in place of a key. */
export type LockHandlerOptions = LockDecoratorOptions<[context: ExecutionContext]>;

/** What `@LockHandler` takes where several requests may run at once. */
export type SemaphoreHandlerOptions = SemaphoreDecoratorOptions<[context: ExecutionContext]>;

type Given = ResourceNames | ((context: ExecutionContext) => ResourceNames) | LockHandlerOptions;

/**
 * Holds a lock while a handler of a controller, resolver or gateway runs: from before its pipes until its promise settles,
 * whoever has stopped waiting for it, such as a timeout interceptor, and until a file or stream that it returned has been
 * sent. An Observable ends when it is unsubscribed. A
 * client that goes away while it waits for the lock stops waiting.
 *
 * Where the method has a `@DistributedLock` of the same resource, the intercepted call locks once. Calls from inside are a
 * `LockReentryError`, or enter again with `mode: 'reentrant'`.
 *
 * Two `@LockHandler` on a method are both held, the upper one first.
 *
 * The key is made before the pipes: it is what the client sent, and `/orders/7` and `/orders/07` are two keys, whatever
 * ParseIntPipe makes of them. The key function of `@DistributedLock` gets what the pipes made. The tag `key` refuses a
 * parameter that is missing.
 *
 * ```ts
 * @LockHandler({ key: (context) => key`order:${context.switchToHttp().getRequest().params.id}` })
 * @LockHandler({ key: 'exports', permits: 3 }) // a semaphore: at most three requests at once
 * ```
 *
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right, or on anything but a method; the
 *   application does not boot where it stands on a field resolver of GraphQL and nothing runs interceptors for that
 */
export function LockHandler(given: Given): MethodDecorator;
export function LockHandler(options: SemaphoreHandlerOptions): MethodDecorator;
export function LockHandler(given: Given | SemaphoreHandlerOptions): MethodDecorator {
  return (target, propertyKey, descriptor) => {
    const where = describeMethod(target, propertyKey);
    const plan: LockPlan<[ExecutionContext]> = isSemaphore(given)
      ? readSemaphorePlan(given, where)
      : readLockPlan(given, where);
    // Only so that an application without the module says what is missing; the interceptor has the service itself.
    declareLockService(target, plan.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    // Not for a lock: so that the call of the interceptor sees how long the handler works.
    wrapMethod(
      descriptor,
      where,
      (original) =>
        function (this: object, ...args: unknown[]) {
          const call = InterceptedCall.comingTo(handler, plan);
          const work = (): unknown => original.apply(this, args);
          return call ? call.run(plan, work) : work();
        },
    );
    addHandlerLock(methodOf(descriptor), handler, plan);
    UseInterceptors(lockInterceptorFor(plan.lockService))(target, propertyKey, descriptor);
    runUpperFirst(methodOf(descriptor));
  };
}

/** The key under which Nest keeps the interceptors of a method. */
const INTERCEPTORS = '__interceptors__';

/**
 * Nest runs the interceptors of the lower decorators first, but who reads two `@LockHandler` takes the upper one for the outer
 * one. They keep the places that they have among the other interceptors.
 */
function runUpperFirst(method: object): void {
  const interceptors = (Reflect.getMetadata(INTERCEPTORS, method) ?? []) as unknown[];
  const ours = interceptors.filter(isLockInterceptor);
  ours.unshift(ours.pop());
  const ordered = interceptors.map((each) => (isLockInterceptor(each) ? ours.shift() : each));
  Reflect.defineMetadata(INTERCEPTORS, ordered, method);
}

function methodOf(descriptor: PropertyDescriptor): object {
  return descriptor.value as object;
}

function isSemaphore(given: Given | SemaphoreHandlerOptions): given is SemaphoreHandlerOptions {
  return given !== null && typeof given === 'object' && 'permits' in given;
}
