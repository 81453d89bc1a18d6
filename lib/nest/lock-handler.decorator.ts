import { type ExecutionContext, UseInterceptors } from '@nestjs/common';
import 'reflect-metadata';
import type { ResourceNames } from '../core/resource.js';
import { InterceptedCall } from './intercepted-call.js';
import type { LockDecoration } from './lock-decoration.js';
import { type LockDecoratorOptions, readLockDecoration } from './lock-decorator-options.js';
import { declareLockService } from './lock-service-property.js';
import { handlerDecorationsOf, LOCK_HANDLER, lockInterceptorFor } from './lock.interceptor.js';
import { describeMethod, wrapMethod } from './method-wrapping.js';
import { readSemaphoreDecoration, type SemaphoreDecoratorOptions } from './semaphore-decorator-options.js';

/** What `@LockHandler` takes in place of a key. */
export type LockHandlerOptions = LockDecoratorOptions<[context: ExecutionContext]>;

/** What `@LockHandler` takes where several requests may run at once. */
export type SemaphoreHandlerOptions = SemaphoreDecoratorOptions<[context: ExecutionContext]>;

type Given = ResourceNames | ((context: ExecutionContext) => ResourceNames) | LockHandlerOptions;

/**
 * Holds a lock while a handler of a controller, resolver or gateway runs: from before its pipes until its promise settles,
 * whoever has stopped waiting for it, such as a timeout interceptor. A stream (an Observable) ends when it is unsubscribed. A
 * client that goes away while it waits for the lock stops waiting.
 *
 * Where the method has a `@DistributedLock` of the same resource, the intercepted call locks once. Calls from inside are a
 * `LockReentryError`, or enter again with `mode: 'reentrant'`.
 *
 * ```ts
 * @LockHandler({ key: (context) => `order:${context.switchToHttp().getRequest().params.id}` })
 * @LockHandler({ key: 'exports', permits: 3 }) // a semaphore: at most three requests at once
 * ```
 *
 * @throws InvalidLockOptionsError when an option cannot be right
 */
export function LockHandler(given: Given): MethodDecorator;
export function LockHandler(options: SemaphoreHandlerOptions): MethodDecorator;
export function LockHandler(given: Given | SemaphoreHandlerOptions): MethodDecorator {
  return (target, propertyKey, descriptor) => {
    const where = describeMethod(target, propertyKey);
    const decoration: LockDecoration<[ExecutionContext]> = isSemaphore(given)
      ? readSemaphoreDecoration(given, where)
      : readLockDecoration(given, where);
    // Only so that an application without the module says what is missing; the interceptor has the service itself.
    declareLockService(target, decoration.lockService);
    const handler = { declaredBy: target, name: String(propertyKey) };
    // Not for a lock: so that the call of the interceptor sees how long the handler works.
    wrapMethod(
      descriptor,
      where,
      (original) =>
        function (this: object, ...args: unknown[]) {
          const call = InterceptedCall.comingTo(handler, decoration);
          const work = (): unknown => original.apply(this, args);
          return call ? call.run(decoration, work) : work();
        },
    );
    const method = descriptor.value as unknown as object;
    Reflect.defineMetadata(LOCK_HANDLER, [decoration, ...handlerDecorationsOf(method)], method);
    UseInterceptors(lockInterceptorFor(decoration.lockService))(target, propertyKey, descriptor);
  };
}

function isSemaphore(given: Given | SemaphoreHandlerOptions): given is SemaphoreHandlerOptions {
  return given !== null && typeof given === 'object' && 'permits' in given;
}
