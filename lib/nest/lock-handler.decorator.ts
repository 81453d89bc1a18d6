import { applyDecorators, type ExecutionContext, SetMetadata, UseInterceptors } from '@nestjs/common';
import type { ResourceNames } from '../core/resource.js';
import { type LockDecoratorOptions, readLockDecoration } from './lock-decorator-options.js';
import { declareLockService } from './lock-service-property.js';
import { LOCK_HANDLER, lockInterceptorFor } from './lock.interceptor.js';
import { describeMethod } from './method-wrapping.js';

/** What `@LockHandler` takes in place of a key. */
export type LockHandlerOptions = LockDecoratorOptions<[context: ExecutionContext]>;

/**
 * Holds a lock while a handler of a controller, resolver or gateway runs: from before its pipes until its Observable or
 * Promise completes, fails, or is unsubscribed. A client that goes away while it waits for the lock stops waiting.
 *
 * ```ts
 * @LockHandler({ key: (context) => `order:${context.switchToHttp().getRequest().params.id}` })
 * ```
 *
 * @throws InvalidLockOptionsError when an option cannot be right
 */
export function LockHandler(
  given: ResourceNames | ((context: ExecutionContext) => ResourceNames) | LockHandlerOptions,
): MethodDecorator {
  return (target, propertyKey, descriptor) => {
    const decoration = readLockDecoration<[ExecutionContext]>(given, describeMethod(target, propertyKey));
    // Only so that an application without the module says what is missing; the interceptor has the service itself.
    declareLockService(target, decoration.lockService);
    const interceptor = lockInterceptorFor(decoration.lockService);
    applyDecorators(SetMetadata(LOCK_HANDLER, decoration), UseInterceptors(interceptor))(
      target,
      propertyKey,
      descriptor,
    );
  };
}
