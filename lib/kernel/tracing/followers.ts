import type { HoldTrace, TracedEnd } from '../events/lock-tracer.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';

/** A tracer, or an object that it created, with the handler of its errors. */
interface Guarded<T> {
  readonly each: T;
  readonly failed: (error: unknown) => void;
}

/** Several tracers as one. None of their errors reaches a caller, and no work runs twice. */
export type Followers<T> = readonly Guarded<T>[];

interface Running {
  run<T>(work: () => T): T;
}

/** The traces of one hold, as one. */
export class Traces {
  /** `true` once work has run under it. Later calls have contexts of their own. */
  hasRun = false;

  constructor(readonly traces: Followers<HoldTrace>) {}

  run<T>(work: () => T): T {
    this.hasRun = true;
    return runIn(this.traces, work);
  }

  ended(end: TracedEnd): void {
    tell(this.traces, (each) => each.ended(end));
  }
}

export function made<T, Made>(followers: Followers<T>, make: (each: T) => Made | undefined): Guarded<Made>[] {
  const all: Guarded<Made>[] = [];
  for (const { each, failed } of followers) {
    const one = guard(failed, () => make(each));
    if (one !== undefined) all.push({ each: one, failed });
  }
  return all;
}

export function tell<T>(followers: Followers<T>, call: (each: T) => void): void {
  for (const { each, failed } of followers) guard(failed, () => call(each));
}

export function guard<T>(failed: (error: unknown) => void, call: () => T): T | undefined {
  try {
    const result = call();
    // TypeScript accepts an async function for most of these.
    if (result instanceof Promise) result.catch(failed);
    return result;
  } catch (error) {
    failed(error);
    return undefined;
  }
}

/** Runs an operation in the context of each of them, and passes them its outcome there, before its caller gets it. */
export function follow<T extends Running, R>(
  followers: Followers<T>,
  operation: () => Promise<R>,
  ended: (each: T, result: R) => void,
  failed: (each: T, error: unknown) => void,
): Promise<R> {
  const hasFailed = (error: unknown): never => {
    tell(followers, (each) => failed(each, error));
    throw error;
  };
  let inside: AsyncContext | undefined;
  try {
    return runIn(followers, () => {
      inside = currentContext();
      return operation().then((result) => {
        tell(followers, (each) => ended(each, result));
        return result;
      }, hasFailed);
    });
  } catch (error) {
    return inside!.runInAsyncScope(hasFailed, undefined, error);
  }
}

/** Runs the work in the context of each of them, the first one outermost. It runs once, whatever they do with it. */
export function runIn<R>(followers: Followers<Running>, work: () => R): R {
  let result: { readonly value: R } | { readonly error: unknown } | undefined;
  const once = (): void => {
    if (result) return;
    try {
      result = { value: work() };
    } catch (error) {
      result = { error };
    }
  };
  let inAll = once;
  for (const { each, failed } of followers.toReversed()) {
    const inner = inAll;
    inAll = () => guard(failed, () => each.run(inner));
  }
  inAll();
  once();
  const known = result!;
  if ('error' in known) throw known.error;
  return known.value;
}
