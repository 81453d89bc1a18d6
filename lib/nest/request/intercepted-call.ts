import { AsyncLocalStorage } from 'node:async_hooks';
import { LockAbortedError } from '../../core/api/errors.js';
import type { Lease } from '../../core/api/lease.js';
import type { LockMode, PermitRequest } from '../../core/api/lock-options.js';

/** A method of a controller, resolver or gateway. */
export interface Handler {
  /** The prototype that has the method: a method that overrides it is another handler. */
  readonly declaredBy: object;
  readonly name: string | symbol;
}

/** How a decorator locks. Each decorator of a method has an object of its own. */
export interface Access {
  readonly mode: LockMode;
  /** Semaphores only. */
  readonly permits?: Pick<PermitRequest, 'count' | 'total'> | undefined;
}

/** What an async context knows of the call that Nest makes in it. */
interface Passage {
  readonly call: InterceptedCall;
  /**
   * Whose wrappers of the method the call has come through. Each lets it pass once: who calls the method again from inside
   * comes to one of them for the second time.
   */
  readonly passed: readonly Access[];
}

const passages = new AsyncLocalStorage<Passage>();

/**
 * A call of a handler by Nest, under a lock that the interceptor holds. The lock is needed for as long as the handler works,
 * whoever has stopped waiting for what it returns.
 */
export class InterceptedCall {
  readonly #handler: Handler;
  readonly #access: Access;
  readonly #lease: Lease | undefined;
  /** The same call under the lock of another `@LockHandler`, which was acquired before. */
  readonly #outer: InterceptedCall | undefined;
  #underWay = 0;
  #isOver = false;
  #whenIdle: (() => void) | undefined;

  constructor(handler: Handler, access: Access, lease: Lease | undefined, outer: InterceptedCall | undefined) {
    this.#handler = handler;
    this.#access = access;
    this.#lease = lease;
    this.#outer = outer;
  }

  /** The call of this handler that the async context belongs to, from outside of the handler. */
  static of(handler: Handler): InterceptedCall | undefined {
    const passage = passages.getStore();
    return passage?.passed.length === 0 && passage.call.#isOf(handler) ? passage.call : undefined;
  }

  /** The call of this handler that comes to this wrapper of it now. Not one from inside of the handler. */
  static comingTo(handler: Handler, wrapper: Access): InterceptedCall | undefined {
    const passage = passages.getStore();
    if (passage === undefined) return undefined; // nearly always
    return passage.call.#isOf(handler) && !passage.passed.includes(wrapper) ? passage.call : undefined;
  }

  /** Whether nothing of the handler is at work. */
  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  /** Lets Nest go on to the handler. */
  enter<T>(next: () => T): T {
    return passages.run({ call: this, passed: [] }, next);
  }

  /** Lets the call pass a wrapper of the method. */
  pass<T>(wrapper: Access, next: () => T): T {
    return passages.run({ call: this, passed: [...(passages.getStore()?.passed ?? []), wrapper] }, next);
  }

  /**
   * Runs the handler, and notes how long it works.
   *
   * @throws LockAbortedError where the request has been given up before: the lock is free by now
   */
  run(wrapper: Access, handler: () => unknown): unknown {
    if (this.#isOver) {
      const why = new Error(`The request was given up before ${String(this.#handler.name)} began`);
      throw new LockAbortedError(this.#lease?.resource ?? '', why);
    }
    return this.pass(wrapper, () => {
      const result = handler();
      if (!isThenable(result)) return result;
      // A promise in place of it: what is lazy, such as a query, would be run by each `then`.
      const promise = Promise.resolve(result);
      this.track(promise);
      return promise;
    });
  }

  /** Something of the handler is at work until the promise settles. */
  track(promise: Promise<unknown>): void {
    const settled = (): void => this.#count(-1);
    this.#count(1);
    promise.then(settled, settled);
  }

  /** Nobody waits for the handler any more: it does not begin from now on. Calls back when nothing of it is at work. */
  end(whenIdle: () => void): void {
    this.#isOver = true;
    if (this.isIdle) whenIdle();
    else this.#whenIdle = whenIdle;
  }

  /** Whether a lock of the interceptor protects this wrapper of the handler already: of this decorator, or as good. */
  holds(wrapper: Access): boolean {
    return this.#access === wrapper || (this.#outer?.holds(wrapper) ?? false);
  }

  /** Whether all that is accessed is held for this call, as what it is accessed for: then it is not locked twice. */
  covers(access: Access, resources: readonly string[]): boolean {
    return resources.every((resource) => this.#coversOne(access, resource));
  }

  #coversOne(access: Access, resource: string): boolean {
    const lease = this.#lease;
    // A lease that was lost meanwhile protects nothing any more.
    if (lease?.resources.includes(resource) && lease.isHeld() && isAsGood(lease, this.#access, access)) return true;
    return this.#outer !== undefined && this.#outer.#coversOne(access, resource);
  }

  #isOf({ declaredBy, name }: Handler): boolean {
    return this.#handler.declaredBy === declaredBy && this.#handler.name === name;
  }

  #count(by: 1 | -1): void {
    if (this.#outer) this.#outer.#count(by);
    this.#underWay += by;
    if (this.isIdle) this.#whenIdle?.();
  }
}

/** Whether the holder of the lease is as safe from others as one of what is accessed. */
function isAsGood(lease: Lease, { permits: held }: Access, { mode, permits: wanted }: Access): boolean {
  if (held && wanted) return held.total === wanted.total && held.count >= wanted.count;
  // Not the mode of the access: a writer may be a reader by now.
  return !held && !wanted && (lease.mode !== 'read' || mode === 'read');
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
