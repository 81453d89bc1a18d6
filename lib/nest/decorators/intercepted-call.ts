import { AsyncLocalStorage } from 'node:async_hooks';
import { LockAbortedError } from '../../kernel/api/errors.js';
import type { Lease } from '../../kernel/api/lease.js';
import type { AsyncContext } from '../../kernel/util/async-contexts.js';
import { isThenable } from '../../kernel/util/objects.js';
import type { LockMode, PermitRequest } from '../../kernel/api/lock-options.js';

/** A method of a controller, resolver or gateway. */
export interface Handler {
  /** The prototype with the method. A method that overrides it is another handler. */
  readonly declaredBy: object;
  readonly name: string | symbol;
}

/**
 * The access that a decorator requests: alone, beside readers, or with permits. Each decorator of a method has an
 * object of its own.
 */
export interface LockAccess {
  readonly mode: LockMode;
  /** Semaphores only. */
  readonly permits?: Pick<PermitRequest, 'count' | 'total'> | undefined;
}

/** The state of Nest's call in an async context. */
interface Passage {
  readonly call: InterceptedCall;
  /**
   * The wrappers of the method that the call has passed, each named by its access. A call passes each of them once. A
   * second arrival at the same wrapper is another call of the method, from inside the handler.
   */
  readonly passed: readonly LockAccess[];
}

const passages = new AsyncLocalStorage<Passage>();

/**
 * A call of a handler by Nest, under a lock that the interceptor holds. The lock is needed as long as the handler
 * works, even after its caller has stopped waiting for the result.
 */
export class InterceptedCall {
  #underWay = 0;
  #isOver = false;
  #whenIdle: (() => void) | undefined;

  /**
   * @param outer the same call under the lock of another `@LockHandler`, which was acquired earlier
   * @param outside the async context of what has begun the call
   */
  constructor(
    private readonly handler: Handler,
    private readonly access: LockAccess,
    private readonly lease: Lease | undefined,
    private readonly outer: InterceptedCall | undefined,
    private readonly outside: AsyncContext,
  ) {}

  /**
   * Returns the call of this handler that this async context belongs to, unless the call is inside a wrapper already.
   */
  static of(handler: Handler): InterceptedCall | undefined {
    const passage = passages.getStore();
    return passage?.passed.length === 0 && passage.call.#isOf(handler) ? passage.call : undefined;
  }

  /** Returns Nest's call that arrives at this wrapper of the handler now, not a call from inside the handler. */
  static comingTo(handler: Handler, wrapper: LockAccess): InterceptedCall | undefined {
    const passage = passages.getStore();
    if (passage === undefined) return undefined; // nearly always
    return passage.call.#isOf(handler) && !passage.passed.includes(wrapper) ? passage.call : undefined;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Runs this in the context from before the call, so that it does not use the call's locks. */
  runOutside<T>(work: () => T): T {
    return this.outside.runInAsyncScope(work);
  }

  /** `true` if no work of the handler is running. */
  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  /** Runs Nest's next step on its way to the handler. */
  enter<T>(next: () => T): T {
    return passages.run({ call: this, passed: [] }, next);
  }

  /** Runs the rest of the call behind a wrapper of the method. */
  pass<T>(wrapper: LockAccess, next: () => T): T {
    return passages.run({ call: this, passed: [...(passages.getStore()?.passed ?? []), wrapper] }, next);
  }

  /**
   * Runs the handler, and tracks its work until that has ended.
   *
   * @throws LockAbortedError if the request has ended already, because its lock may be released by now
   */
  run(wrapper: LockAccess, handler: () => unknown): unknown {
    if (this.#isOver) {
      const why = new Error(`The request ended before ${String(this.handler.name)} began`);
      throw new LockAbortedError(this.lease?.resource ?? '', why);
    }
    return this.pass(wrapper, () => {
      const result = handler();
      if (!isThenable(result)) return result;
      // One promise instead of the thenable: each `then` of a lazy one, such as a query, would run it again.
      const promise = Promise.resolve(result);
      this.track(promise);
      return promise;
    });
  }

  /** Counts as work of the handler until the promise settles. */
  track(promise: Promise<unknown>): void {
    const settled = (): void => this.#count(-1);
    this.#count(1);
    promise.then(settled, settled);
  }

  /** Ends the call: the handler can no longer begin. Calls back when no work of it is running. */
  end(whenIdle: () => void): void {
    this.#isOver = true;
    if (this.isIdle) whenIdle();
    else this.#whenIdle = whenIdle;
  }

  /** Returns true if the interceptor already holds the lock of this decorator for the call. */
  holds(wrapper: LockAccess): boolean {
    return this.access === wrapper || (this.outer?.holds(wrapper) ?? false);
  }

  /**
   * Returns true if this call already holds all the resources, in a mode at least as strong. Then they are not locked
   * twice.
   */
  covers(access: LockAccess, resources: readonly string[]): boolean {
    return resources.every((resource) => this.#coversOne(access, resource));
  }

  #coversOne(access: LockAccess, resource: string): boolean {
    const lease = this.lease;
    // A lost lease no longer protects anything.
    if (lease?.resources.includes(resource) && lease.isHeld() && isAsGood(lease, this.access, access)) return true;
    return this.outer !== undefined && this.outer.#coversOne(access, resource);
  }

  #isOf({ declaredBy, name }: Handler): boolean {
    return this.handler.declaredBy === declaredBy && this.handler.name === name;
  }

  #count(by: 1 | -1): void {
    if (this.outer) this.outer.#count(by);
    this.#underWay += by;
    if (this.isIdle) this.#whenIdle?.();
  }
}

/** Returns true if the lease protects its holder at least as well as the wanted access would. */
function isAsGood(lease: Lease, { permits: held }: LockAccess, { mode, permits: wanted }: LockAccess): boolean {
  if (held && wanted) return held.total === wanted.total && held.count >= wanted.count;
  // The mode of the lease, not of its access: a writer may have downgraded it to a reader.
  return !held && !wanted && (lease.mode !== 'read' || mode === 'read');
}
