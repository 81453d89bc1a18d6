import { AsyncResource } from 'node:async_hooks';

/** An async context to run callbacks in. It has the `AsyncLocalStorage` stores that were set when it was captured. */
export type AsyncContext = Pick<AsyncResource, 'runInAsyncScope'>;

const TYPE = 'nestjs-redis-lock';

/**
 * The context in which this module was loaded, usually outside of any request. Timers and sockets that outlive a call
 * are created in it, so that they keep no request's data in memory. Callbacks that belong to no call also run in it.
 */
const ROOT = new AsyncResource(TYPE);

/**
 * The context of the running code. Much cheaper than `AsyncLocalStorage.snapshot()`. It keeps its stores in memory
 * while it is referenced.
 */
export function currentContext(): AsyncContext {
  return new AsyncResource(TYPE);
}

/** Runs the work outside the context of any caller. */
export function inRootContext<This, Args extends unknown[], T>(
  work: (this: This, ...args: Args) => T,
  thisArg?: This,
  ...args: Args
): T {
  return ROOT.runInAsyncScope(work, thisArg, ...args);
}
