import { type ExecutionContext, UseInterceptors } from '@nestjs/common';
import 'reflect-metadata';
import { addHandlerLock } from './handler-locks.js';
import { InterceptedCall } from '../decorators/intercepted-call.js';
import {
  type LockDecoratorOptions,
  type LockPlan,
  readLockPlan,
  readSemaphorePlan,
  type SemaphoreDecoratorOptions,
} from '../decorators/lock-plan.js';
import type { KeyAlone } from '../decorators/method-types.js';
import { isLockInterceptor, lockInterceptorFor } from './lock.interceptor.js';
import { checkIsOnlyArgument, declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';

/** Options for a semaphore: several requests may run at once. */
type SemaphoreHandlerOptions = SemaphoreDecoratorOptions<[context: ExecutionContext]> & { mode?: undefined };

/** Lock options, or semaphore options if `permits` is set. */
export type LockHandlerOptions =
  | (LockDecoratorOptions<[context: ExecutionContext]> & { permits?: undefined })
  | SemaphoreHandlerOptions;

type Given = KeyAlone<[context: ExecutionContext]> | LockHandlerOptions;

/**
 * Holds a lock while a handler of a controller, resolver or gateway runs. It is acquired before the pipes run, and
 * released when the handler has ended:
 *
 * - A promise has ended when it settles, even if a timeout interceptor has stopped waiting for it.
 * - A file or a stream has ended when it is sent.
 * - An Observable or a GraphQL subscription has ended when it completes, fails or is unsubscribed.
 *
 * If the client disconnects while its request is waiting for the lock, the wait ends.
 *
 * The result of a function `onBusy` is the response to the request.
 *
 * The key function sees the raw request: `/orders/7` and `/orders/07` are two keys, even with ParseIntPipe. The `key`
 * tag rejects a missing parameter.
 *
 * - ``@LockHandler({ key: (context) => key`order:${context.switchToHttp().getRequest().params.id}` })``
 * - `@LockHandler({ key: 'exports', permits: 3 })` is a semaphore: at most three requests at once
 *
 * If the lease is lost, the request is answered at once with a `LeaseLostError` (503), and a stream is ended. The
 * handler may keep running; see `onLost`.
 *
 * @see docs/guide/request-handlers.md
 * @param keyOrOptions the name of the resource, several names, or a function of the context that returns them; or
 *   options that include `key`
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the application starts, if
 *   Nest runs no interceptors for the method, because it is no handler, for example
 */
export function LockHandler(keyOrOptions: Given): MethodDecorator;
export function LockHandler(...all: [Given]): MethodDecorator {
  checkIsOnlyArgument('LockHandler', all);
  const [given] = all;
  return (target, propertyKey, descriptor) => {
    const where = describeMethod(target, propertyKey);
    const plan: LockPlan<[ExecutionContext]> = isSemaphore(given)
      ? readSemaphorePlan(given, where)
      : readLockPlan(given, where);
    // For the error of an application without the module. The interceptor gets the service by its own injection.
    declareLockService(target, plan.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    // The wrapper does not lock. It lets the interceptor's call know how long the handler works.
    wrapMethod(
      descriptor,
      where,
      (original) =>
        showKindOf(original, function (this: object, ...args: unknown[]) {
          const call = InterceptedCall.comingTo(handler, plan);
          const work = (): unknown => original.apply(this, args);
          return call ? call.run(plan, work) : work();
        }),
      true,
    );
    addHandlerLock(methodOf(descriptor), handler, plan);
    UseInterceptors(lockInterceptorFor(plan.lockService))(target, propertyKey, descriptor);
    runUpperFirst(methodOf(descriptor));
  };
}

/**
 * Lets the wrapper show that the method is async, or a generator: `@Span` of `nestjs-otel` would otherwise end its span
 * before the method has ended.
 */
function showKindOf<T extends object>(original: object, wrapper: T): T {
  return Object.setPrototypeOf(wrapper, Object.getPrototypeOf(original) as object) as T;
}

/** The key under which Nest keeps the interceptors of a method. */
const INTERCEPTORS = '__interceptors__';

/**
 * Moves our newest interceptor before our others, so that the upper `@LockHandler` is the outer one, as readers expect.
 * Nest runs those from lower decorators first. The other interceptors keep their places.
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

function isSemaphore(given: Given): given is SemaphoreHandlerOptions {
  return given !== null && typeof given === 'object' && 'permits' in given;
}
