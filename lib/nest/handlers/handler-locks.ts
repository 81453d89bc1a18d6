import type { ExecutionContext } from '@nestjs/common';
import 'reflect-metadata';
import { prototypesOf } from '../../kernel/util/objects.js';
import type { Handler } from '../decorators/intercepted-call.js';
import type { LockPlan } from '../decorators/lock-plan.js';
import type { Scan } from '../scan.js';
import { lockedMethodsOf } from '../decorators/method.js';

/** The metadata key of a method for its `@LockHandler` plans. */
const HANDLER_LOCKS = 'nestjs-redis-lock:handler';

/** The metadata key of a prototype for the names of its own methods with `@LockHandler`. */
const LOCKED_HANDLERS = 'nestjs-redis-lock:handlers';

interface HandlerLocks {
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
  const names = [...ownLockedHandlersOf(handler.declaredBy), handler.name];
  Reflect.defineMetadata(LOCKED_HANDLERS, [...new Set(names)], handler.declaredBy);
}

/** Returns the names of the methods with `@LockHandler`, inherited ones included. */
export function lockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return [...new Set(prototypesOf(prototype).reverse().flatMap(ownLockedHandlersOf))];
}

/**
 * Returns true if a decorator above `@LockHandler` has replaced the method by one without its metadata, unless a
 * subclass overrides the method.
 */
export function hasLostItsLocks(prototype: object, name: string | symbol): boolean {
  const owner = prototypesOf(prototype).find((each) => Object.hasOwn(each, name)) as Record<string | symbol, object>;
  return ownLockedHandlersOf(owner).includes(name) && !handlerLocksOf(owner[name]!);
}

/** Returns the names of the methods with a lock decorator of this package, inherited ones included. */
export function methodsLockedBy({ isOurs }: Scan, prototype: object): readonly (string | symbol)[] {
  const methods = prototype as Record<string | symbol, object>;
  const names = lockedHandlersOf(prototype).filter((name) => handlerLocksOf(methods[name]!)?.plans.some(isOurs));
  const locked = prototypesOf(prototype).flatMap(lockedMethodsOf).filter(isOurs);
  return [...new Set([...names, ...locked.map(({ name }) => name)])];
}

function ownLockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return (Reflect.getOwnMetadata(LOCKED_HANDLERS, prototype) as (string | symbol)[] | undefined) ?? [];
}
