import type { ExecutionContext } from '@nestjs/common';
import 'reflect-metadata';
import type { Handler } from '../request/intercepted-call.js';
import type { LockPlan } from '../decorators/lock-plan.js';

/** The metadata key of `@LockHandler`, on the method. */
const HANDLER_LOCKS = 'nestjs-redis-lock:handler';

/** The names of the methods with `@LockHandler`, on their prototype: those that it inherits included. */
const LOCKED_HANDLERS = 'nestjs-redis-lock:handlers';

/** What the `@LockHandler` of a method say. */
export interface HandlerLocks {
  readonly handler: Handler;
  /** From the top down. */
  readonly plans: readonly LockPlan<[ExecutionContext]>[];
}

/**
 * Reads it from the function that Nest calls. That may be another one than the method, to which the metadata were copied: some
 * modules bind it first.
 */
export function handlerLocksOf(method: object): HandlerLocks | undefined {
  return Reflect.getMetadata(HANDLER_LOCKS, method) as HandlerLocks | undefined;
}

/** Adds what one more `@LockHandler` says, above the others of the method. */
export function addHandlerLock(method: object, handler: Handler, plan: LockPlan<[ExecutionContext]>): void {
  const plans = [plan, ...(handlerLocksOf(method)?.plans ?? [])];
  Reflect.defineMetadata(HANDLER_LOCKS, { handler, plans } satisfies HandlerLocks, method);
  const names = [...lockedHandlersOf(handler.declaredBy), handler.name];
  Reflect.defineMetadata(LOCKED_HANDLERS, [...new Set(names)], handler.declaredBy);
}

export function lockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return (Reflect.getMetadata(LOCKED_HANDLERS, prototype) as (string | symbol)[] | undefined) ?? [];
}
