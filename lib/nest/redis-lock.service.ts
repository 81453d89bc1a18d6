import type { BeforeApplicationShutdown } from '@nestjs/common';
import type { LockObserver } from '../core/events.js';
import type { Lease } from '../core/lease.js';
import type { LockClient, LockedWork } from '../core/lock-client.js';
import type { LockOptions } from '../core/lock-options.js';
import type { LockState } from '../core/lock-store.js';
import type { ResourceNames } from '../core/resource.js';
import type { SingletonRunOptions, SingletonWork } from '../core/singleton-run-options.js';
import type { SingletonRuns } from '../core/singleton-runs.js';

/** The locks of this application. */
export class RedisLockService implements BeforeApplicationShutdown {
  readonly #client: LockClient;
  readonly #singletonRuns: SingletonRuns;
  readonly #drainMs: number;

  constructor(client: LockClient, singletonRuns: SingletonRuns, drainMs: number) {
    this.#client = client;
    this.#singletonRuns = singletonRuns;
    this.#drainMs = drainMs;
  }

  /**
   * Acquires a resource, or all of several, waiting up to `waitMs`. Whoever calls this must release the lease:
   * `await using lease = await locks.acquire('reports')`, or `finally { await lease.release() }`. To lock again further
   * down in the same async context (`mode: 'reentrant'`, `current()`), use {@link using} or a decorator.
   *
   * @throws LockTimeoutError when it stays locked for `waitMs`
   * @throws LockBusyError when it is locked and `waitMs` is 0, or a retry strategy gives up
   * @throws LockQueueFullError when `maxWaiters` wait for it already
   * @throws LockUnavailableError when Redis cannot be reached within `waitMs`, or refuses
   * @throws LockAbortedError when `signal` aborts
   * @throws LockReentryError when this async context holds it already and would wait for itself
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option or a name cannot be right
   */
  acquire(resource: ResourceNames, options?: LockOptions): Promise<Lease> {
    return this.#client.acquire(resource, options);
  }

  /**
   * Like {@link acquire}, but never waits: gives `null` when a resource is locked. Ignores `waitMs` and `retry`.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<Lease | null> {
    return this.#client.tryAcquire(resource, options);
  }

  /**
   * Does the work under a lease and releases it afterwards. What the work returns or throws passes through untouched; a
   * release that fails is told to the observers.
   *
   * @throws the errors of {@link acquire}; then the work was not called
   */
  using<T>(resource: ResourceNames, work: LockedWork<T>): Promise<T>;
  using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T>;
  using<T>(
    resource: ResourceNames,
    optionsOrWork: LockOptions | LockedWork<T> | undefined,
    work?: LockedWork<T>,
  ): Promise<T> {
    if (typeof optionsOrWork === 'function') return this.#client.using(resource, undefined, optionsOrWork);
    return this.#client.using(resource, optionsOrWork, work!);
  }

  /**
   * The lease that this async context holds through {@link using}, a decorator or the interceptor: the innermost one, or
   * the one of a resource. A lost lease is still shown, so that its `signal` and `assertHeld()` say so.
   */
  current(resource?: string): Lease | undefined {
    return this.#client.current(resource);
  }

  /**
   * Who holds a resource and who waits for it, at this moment, as Redis knows it.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  inspect(resource: string): Promise<LockState> {
    return this.#client.inspect(resource);
  }

  /** Calls back with everything that happens to a lock from now on. Gives the function that ends this. */
  observe(observer: LockObserver): () => void {
    return this.#client.observers.add(observer);
  }

  /**
   * Runs one tick of a job on one instance of the fleet: what the cron decorators call. For schedulers of your own. Gives
   * `undefined` where another instance has the tick.
   *
   * @throws LockUnavailableError when the tick could not be claimed within `lock.waitMs`
   */
  runSingleton<T>(options: SingletonRunOptions, work: SingletonWork<T>): Promise<T | undefined> {
    return this.#singletonRuns.run(options, work);
  }

  /** Called by Nest. Takes no new locks, gives running work `shutdown.drainMs`, and closes its connections. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#client.shutdown(this.#drainMs);
  }
}
