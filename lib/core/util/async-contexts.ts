import { AsyncResource } from 'node:async_hooks';

/**
 * An async context that callbacks can be run in: with the `AsyncLocalStorage` stores that were set when it was taken.
 */
export type AsyncContext = Pick<AsyncResource, 'runInAsyncScope'>;

const TYPE = 'nestjs-redis-lock';

/**
 * The context in which this module was loaded, usually that of no request. What outlives a call (timers, sockets) is
 * made in it, so that it keeps the data of no request in memory; and callbacks that belong to no call run in it.
 */
const ROOT = new AsyncResource(TYPE);

/**
 * The context of the running code. Much cheaper than `AsyncLocalStorage.snapshot()`. It keeps the stores in memory as
 * long as it is kept.
 */
export function currentContext(): AsyncContext {
  return new AsyncResource(TYPE);
}

/** Runs the work in no context of any caller. */
export function inRootContext<This, Args extends unknown[], T>(
  work: (this: This, ...args: Args) => T,
  thisArg?: This,
  ...args: Args
): T {
  return ROOT.runInAsyncScope(work, thisArg, ...args);
}
