import type { ExecutionContext } from '@nestjs/common';
import 'reflect-metadata';
import { prototypesOf } from '../../kernel/util/objects.js';
import type { Handler } from '../decorators/intercepted-call.js';
import type { LockPlan } from '../decorators/lock-plan.js';
import type { Scan } from '../scan.js';
import { lockedMethodsOf } from '../decorators/method.js';

/** The metadata key of `@LockHandler`, on the method. */
const HANDLER_LOCKS = 'nestjs-redis-lock:handler';

/** The metadata key of a prototype: the names of its own methods with `@LockHandler`. */
const LOCKED_HANDLERS = 'nestjs-redis-lock:handlers';

/** The locks that the `@LockHandler` decorators of a method ask for. */
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

/** The names of the methods with `@LockHandler`, also of those that are inherited. */
export function lockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return [...new Set(prototypesOf(prototype).reverse().flatMap(ownLockedHandlersOf))];
}

/**
 * Whether a decorator above `@LockHandler` has replaced the method by one without its metadata. A subclass that
 * overrides the method is no such case.
 */
export function hasLostItsLocks(prototype: object, name: string | symbol): boolean {
  const owner = prototypesOf(prototype).find((each) => Object.hasOwn(each, name)) as Record<string | symbol, object>;
  return ownLockedHandlersOf(owner).includes(name) && !handlerLocksOf(owner[name]!);
}

/** The names of the methods that a lock service locks, with any decorator of ours. Inherited ones are among them. */
export function methodsLockedBy({ isOurs }: Scan, prototype: object): readonly (string | symbol)[] {
  const methods = prototype as Record<string | symbol, object>;
  const names = lockedHandlersOf(prototype).filter((name) => handlerLocksOf(methods[name]!)?.plans.some(isOurs));
  const locked = prototypesOf(prototype).flatMap(lockedMethodsOf).filter(isOurs);
  return [...new Set([...names, ...locked.map(({ name }) => name)])];
}

function ownLockedHandlersOf(prototype: object): readonly (string | symbol)[] {
  return (Reflect.getOwnMetadata(LOCKED_HANDLERS, prototype) as (string | symbol)[] | undefined) ?? [];
}
