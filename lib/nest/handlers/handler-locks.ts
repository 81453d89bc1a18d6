import type { ExecutionContext } from '@nestjs/common';
import 'reflect-metadata';
import type { Handler } from '../request/intercepted-call.js';
import type { LockPlan } from '../decorators/lock-plan.js';

/** The metadata key of `@LockHandler`, on the method. */
const HANDLER_LOCKS = 'nestjs-redis-lock:handler';

/** The metadata key of a prototype: the names of its methods with `@LockHandler`, also of those that it inherits. */
const LOCKED_HANDLERS = 'nestjs-redis-lock:handlers';

/** The locks that the `@LockHandler` decorators of a method ask for. */
export interface HandlerLocks {
  readonly handler: Handler;
  /** One for each decorator, the upper one first. */
  readonly plans: readonly LockPlan<[ExecutionContext]>[];
}

/**
 * Returns the locks of a handler.
 *
 * @param method the function that Nest calls. It may be a copy of the method, with its metadata: some modules bind it
 *   first.
 */
export function handlerLocksOf(method: object): HandlerLocks | undefined {
  return Reflect.getMetadata(HANDLER_LOCKS, method) as HandlerLocks | undefined;
}

/** Adds the plan of one more `@LockHandler`, above the others of the method. */
export function addHandlerLock(method: object, handler: Handler, plan: LockPlan<[ExecutionContext]>): void {
  const plans = [plan, ...(handlerLocksOf(method)?.plans ?? [])];
  Reflect.defineMetadata(HANDLER_LOCKS, { handler, plans } satisfies HandlerLocks, method);
  const names = [...lockedHandlersOf(handler.declaredBy), handler.name];
  Reflect.defineMetadata(LOCKED_HANDLERS, [...new Set(names)], handler.declaredBy);
}

export function lockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return (Reflect.getMetadata(LOCKED_HANDLERS, prototype) as (string | symbol)[] | undefined) ?? [];
}
