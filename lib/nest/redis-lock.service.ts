import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { CampaignOptions } from '../core/leader/campaign-options.js';
import type { CountdownLatch, LatchOptions } from '../core/latch/countdown-latch.js';
import type { LockObserver } from '../core/api/events.js';
import type { Latches } from '../core/latch/latches.js';
import type { Leadership } from '../core/leader/leadership.js';
import type { Lease, LockedWork } from '../core/api/lease.js';
import type { AdoptOptions } from '../core/lease/adoption.js';
import type { LockClient } from '../core/lock-client.js';
import type { ForceReleaseOptions, ListOptions } from '../core/operators.js';
import type { Semaphore } from '../core/semaphore/semaphore.js';
import type { SemaphoreOptions } from '../core/semaphore/semaphore-options.js';
import type { LockOptions } from '../core/api/lock-options.js';
import type { LockState } from '../core/store/lock-store.js';
import type { ResourceNames } from '../core/api/resource.js';
import type { SingletonRunOptions, SingletonWork } from '../core/singleton/singleton-run-options.js';
import type { SingletonRuns } from '../core/singleton/singleton-runs.js';
import { checkFunction } from '../core/api/validation.js';

/** The locks of this application. */
export class RedisLockService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #client: LockClient;
  readonly #singletonRuns: SingletonRuns;
  readonly #latches: Latches;
  readonly #drainMs: number;
  readonly #onStarted: (() => void) | undefined;

  constructor(
    client: LockClient,
    singletonRuns: SingletonRuns,
    latches: Latches,
    drainMs: number,
    onStarted?: () => void,
  ) {
    this.#client = client;
    this.#singletonRuns = singletonRuns;
    this.#latches = latches;
    this.#drainMs = drainMs;
    this.#onStarted = onStarted;
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
   * @throws LockModeMismatchError when the resource is in use as a semaphore
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option or a name cannot be right
   */
  acquire(resource: ResourceNames, options?: LockOptions): Promise<Lease> {
    return this.#client.acquire(resource, options, this.#client.origin(this.acquire));
  }

  /**
   * Like {@link acquire}, but never waits: gives `null` when a resource is locked. Ignores `waitMs` and `retry`.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<Lease | null> {
    return this.#client.tryAcquire(resource, options, this.#client.origin(this.tryAcquire));
  }

  /**
   * Does the work under a lease and releases it afterwards. What the work returns or throws passes through untouched; a
   * release that fails is told to the observers.
   *
   * @throws the errors of {@link acquire}, or LeaseLostError when the lease was lost before the work began; then the work was not called
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
   * the one of a resource; `leader:<name>` for the term of a leadership, and `cron:<job>` for the run of a job. A lost lease is still shown, so that its `signal` and `assertHeld()` say so.
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
    return this.#client.operators.inspect(resource);
  }

  /**
   * What {@link inspect} says of the resources that are held or waited for at this moment. Goes through all keys of the
   * database, a thousand at a time, until it has found as many as it may: for people and dashboards, not for every request.
   *
   * @throws LockUnavailableError when Redis cannot be reached, refuses, or has too many keys for one `attemptTimeoutMs`
   */
  list(options?: ListOptions): Promise<LockState[]> {
    return this.#client.operators.list(options);
  }

  /**
   * Ends a lease of any process, and grants the resource to whoever is next. Only the lease that was seen: one that has a
   * later token stays. Its holder learns of it with its next renewal, at a third of its lease, by its `signal`; until then it
   * may go on working, so protect what it writes by its fencing token.
   *
   * @returns whether there was such a lease
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  forceRelease(resource: string, options: ForceReleaseOptions): Promise<boolean> {
    return this.#client.operators.forceRelease(resource, options);
  }

  /**
   * At most so many at once over the whole fleet. Sends nothing; make one whenever you need it.
   *
   * @throws InvalidLockOptionsError
   */
  semaphore(resource: string, options: SemaphoreOptions): Semaphore {
    return this.#client.semaphore(resource, options);
  }

  /**
   * Takes over the lease that `lease.transfer()` handed on, in whichever process. It has the same fencing token. Whoever
   * calls this must release it.
   *
   * @throws LeaseLostError when it has ended, or was adopted before
   * @throws LockUnavailableError when Redis does not answer within `waitMs`
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when the text is not what `transfer()` gave
   */
  adopt(text: string, options?: AdoptOptions): Promise<Lease> {
    return this.#client.adopt(text, options, this.#client.origin(this.adopt));
  }

  /**
   * Calls back with everything that happens to a lock from now on. Gives the function that ends this.
   *
   * @throws InvalidLockOptionsError for anything but a function
   */
  observe(observer: LockObserver): () => void {
    // Not undefined, which passes for an option that was left out.
    checkFunction('observer', observer ?? null);
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

  /**
   * Makes this instance a candidate: of all instances that campaign for a leadership, one leads at a time, until it resigns,
   * dies or loses its lease. A second call joins the same candidate, with callbacks of its own.
   *
   * The leader holds the lock `leader:<name>`, which nothing else can take: an ordinary lock may be called like a leadership.
   *
   * ```ts
   * const mailer = locks.campaign('mailer', { onElected: (term) => poll(term.signal) });
   * ```
   *
   * @param name of the leadership, at most 505 bytes
   * @throws InvalidLockOptionsError when an option or the name cannot be right, or `leaseMs` is not that of the first call
   */
  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#client.campaign(name, options);
  }

  /** The running campaign of this instance, which {@link campaign} or `@LeaderOnly` has begun; `undefined` where there is none. */
  leadership(name: string): Leadership | undefined {
    return this.#client.leadership(name);
  }

  /**
   * A latch: it opens when it was counted down `count` times, in whatever processes, and whoever waits for it goes on. Sends
   * nothing by itself. All who use the name state the same count.
   *
   * @param count 1 to 1,000,000
   * @throws InvalidLockOptionsError when an option or the name cannot be right
   */
  latch(name: string, count: number, options?: LatchOptions): CountdownLatch {
    return this.#latches.latch(name, count, options);
  }

  /** Called by Nest. From now on its connections keep the process alive; before that, only calls under way do. */
  onApplicationBootstrap(): void {
    this.#onStarted?.();
  }

  /** Called by Nest. Takes no new locks, gives running work `shutdown.drainMs`, and closes its connections. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#client.shutdown(this.#drainMs);
  }
}
