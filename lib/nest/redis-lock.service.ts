import type { CampaignOptions, Leadership } from '../features/leader/core/leadership.js';
import type { LockOrderEdge } from '../kernel/events/events.js';
import type { LockObserver } from '../kernel/events/observers.js';
import { type Lease, type LockedWork, type TryUsingResult, workBeforeOptions } from '../kernel/api/lease.js';
import type { LockClient } from '../kernel/lock-client.js';
import type { LockFleet } from '../features/fleet/core/findings/finding.js';
import type { FleetOptions } from '../features/fleet/core/roll/lock-fleet.js';
import type { HealthOptions, LockHealth } from '../features/fleet/core/health/health-checks.js';
import type { Contention, ContentionOptions } from '../features/fleet/core/contention/contention.js';
import type { ExplainOptions } from '../features/fleet/core/explain/explainer.js';
import type { LockExplanation } from '../features/fleet/core/explain/explanation.js';
import type { ForceReleaseOptions, ListOptions } from '../features/fleet/core/operators.js';
import type { Semaphore } from '../kernel/semaphore/semaphore.js';
import type { SemaphoreOptions } from '../kernel/semaphore/semaphore-options.js';
import type { LockOptions } from '../kernel/api/lock-options.js';
import type { LockState } from '../kernel/store/lock-state.js';
import type { ResourceNames } from '../kernel/api/resource.js';
import type { SingletonRunOptions, SingletonWork } from '../features/jobs/core/singleton-run-options.js';
import type { OnceOptions } from '../features/once/core/once-options.js';
import type { WaitUntilFreeOptions } from '../features/watch/core/lock-watches.js';
import { LockModuleMissingError } from '../kernel/api/errors.js';
import { checkFunction } from '../kernel/api/validation.js';
import { addInjected, keepParts, type ServiceParts } from './service-parts.js';

/** The locks of this application. */
// It implements hooks of Nest, but doesn't name their interfaces: so both formats of the package share its type.
export class RedisLockService {
  readonly #parts: ServiceParts;

  /** @internal */
  constructor(parts: ServiceParts) {
    // JavaScript, and a provider of the class itself, may call it with anything.
    if (typeof (parts as { client?: Partial<LockClient> } | undefined)?.client?.using !== 'function') {
      throw new LockModuleMissingError(
        'RedisLockService cannot be created with new or listed as a provider: RedisLockModule creates it. Import ' +
          'RedisLockModule.forRoot({ connection: ... }) in the root module, and inject the service. In a unit test, use ' +
          'passThroughLocks() of nestjs-redis-lock/testing.',
        '',
      );
    }
    this.#parts = parts;
    keepParts(this, parts);
  }

  /**
   * Acquires a resource, or all of several, and waits up to `waitMs` for it. The caller must release the lease: `await
   * using lease = await locks.acquire('reports')`, or `finally { await lease.release() }`. Such a lease belongs to no
   * async context: for `current()` and `mode: 'reentrant'`, use {@link using} or a decorator.
   *
   * @throws LockTimeoutError if it is not free within `waitMs`
   * @throws LockBusyError if it is locked and `waitMs` is 0, or the retry strategy gives up
   * @throws LockQueueFullError if `maxWaiters` calls are already waiting for it, or more than `maxAhead` are ahead
   * @throws LockUnavailableError if Redis is unreachable for `unavailableMs` or `waitMs`, or rejects the command
   * @throws LockAbortedError if `signal` aborts
   * @throws LockReentryError if this async context already holds it and would wait for itself
   * @throws LockModeMismatchError if the resource is in use as a semaphore
   * @throws LockShutdownError if the application is shutting down
   * @throws InvalidLockOptionsError if an option or a name is invalid
   */
  acquire(resource: ResourceNames, options?: LockOptions): Promise<Lease> {
    return this.#parts.client.withOrigin(this.acquire, (origin) =>
      this.#parts.client.acquire(resource, options, origin),
    );
  }

  /**
   * Like {@link acquire}, but resolves to `null` if a resource is busy: it is locked, is not free within `waitMs`, or
   * has a full queue. It only waits if you pass `waitMs`: the default is 0 here, whatever the module sets. It then
   * waits like {@link acquire}, in the fair queue or by the `retry` strategy that you pass.
   *
   * @throws the errors of {@link acquire}, except `LockBusyError`, `LockTimeoutError` and `LockQueueFullError`
   */
  tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<Lease | null> {
    return this.#parts.client.withOrigin(this.tryAcquire, (origin) =>
      this.#parts.client.tryAcquire(resource, options, origin),
    );
  }

  /**
   * Acquires the lock, runs the work, and releases the lock. Errors that the work throws are passed on unchanged. A
   * failed release is reported to observers.
   *
   * @throws LeaseLostError if the lease is lost before the work settles. `workFinished` is `true` if the work ran to
   *   its end, and `value` is its result; with `onLost: 'ignore'`, the call resolves to that instead. If the lease is
   *   lost before the work begins, the work is not called
   * @throws the errors of {@link acquire}
   */
  using<T>(resource: ResourceNames, work: LockedWork<T>): Promise<T>;
  using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T>;
  using<T>(
    resource: ResourceNames,
    optionsOrWork: LockOptions | LockedWork<T> | undefined,
    work?: LockedWork<T>,
  ): Promise<T> {
    // Avoids optionsAndWork, which allocates an array.
    if (typeof optionsOrWork !== 'function') return this.#parts.client.using(resource, optionsOrWork, work!);
    if (work !== undefined) return Promise.reject(workBeforeOptions('using'));
    return this.#parts.client.using(resource, undefined, optionsOrWork);
  }

  /**
   * Like {@link using}, but resolves to `{ ran: false }` without calling the work if a resource is busy, and otherwise
   * to `{ ran: true, value }`. Waits like {@link tryAcquire}.
   *
   * ```ts
   * const { ran } = await locks.tryUsing('cache', { waitMs: 200 }, () => refresh());
   * ```
   *
   * @throws LeaseLostError like {@link using}
   * @throws the errors of {@link tryAcquire}
   */
  tryUsing<T>(resource: ResourceNames, work: LockedWork<T>): Promise<TryUsingResult<T>>;
  tryUsing<T>(
    resource: ResourceNames,
    options: LockOptions | undefined,
    work: LockedWork<T>,
  ): Promise<TryUsingResult<T>>;
  tryUsing<T>(
    resource: ResourceNames,
    optionsOrWork: LockOptions | LockedWork<T> | undefined,
    work?: LockedWork<T>,
  ): Promise<TryUsingResult<T>> {
    return this.#parts.client.tryUsing(resource, optionsOrWork, work);
  }

  /**
   * Resolves once the resource is free: it has no holder and no waiter. Acquires nothing and has no place in the queue,
   * so it delays no other caller. A resource that always passes to the next waiter is never free. Another caller may
   * acquire it before this promise resolves; to keep others out, use {@link using}.
   *
   * @param resource one name; for a semaphore, free means that no permit is held. `leader:<name>` and `cron:<job>` work
   *   too
   * @throws LockTimeoutError if it was not free within `waitMs`
   * @throws LockUnavailableError if Redis is unreachable for `unavailableMs` or at the end of `waitMs`, or rejects the
   *   command
   * @throws LockAbortedError if `signal` aborts
   * @throws LockReentryError if this async context itself holds the resource
   * @throws LockShutdownError if the application is shutting down
   * @throws InvalidLockOptionsError if an option or the name is invalid; nothing was sent
   */
  waitUntilFree(resource: string, options?: WaitUntilFreeOptions): Promise<void> {
    return this.#parts.client.watches.waitUntilFree(resource, options);
  }

  /**
   * **Not exactly-once: the work may run again after a crash**, or if its result expires, is evicted by Redis, or is
   * lost in a failover.
   *
   * Runs the work once across all instances, and returns its result to every call with this key until `resultTtlMs` has
   * passed. Calls that arrive while it runs wait for it. A later call costs one `GET`. If the work throws, nothing is
   * stored: the calls that wait in this process get the same error, and another process runs the work again. If the
   * process that runs it dies, a waiting process runs it once the lease has expired.
   *
   * ```ts
   * const report = await locks.once('report:7', { resultTtlMs: 60_000 }, () => build(7));
   * ```
   *
   * The result is stored as JSON, and every call gets the parsed JSON, even the one that did the work: a `Date` is a
   * string for all of them. The lock of the work is `once:<key>`.
   *
   * @param key one name. It must contain everything that the result depends on, such as the tenant
   * @throws the error of the work, if this call ran it, or waited for another call in this process
   * @throws LockBusyError if another call does the work and `waitMs` is 0
   * @throws LockTimeoutError if another call is still doing the work after `waitMs`
   * @throws LeaseLostError if the lease is lost before the work ends; `value` is its result, which is not stored. With
   *   `onLost: 'ignore'`, the call resolves to that instead
   * @throws LockReentryError if the work of a key calls `once` with the same key
   * @throws LockUnavailableError if Redis is unreachable for `unavailableMs`, or rejects the command
   * @throws LockAbortedError if `signal` aborts
   * @throws LockShutdownError if the application is shutting down
   * @throws InvalidLockOptionsError if an option or the key is invalid, if the result cannot be stored as JSON, and on
   *   a quorum
   */
  once<T>(key: string, options: OnceOptions<T>, work: LockedWork<T>): Promise<T> {
    return this.#parts.once.run(key, options, work);
  }

  /**
   * Deletes the result that {@link once} has stored for a key, so that the next call runs the work. If the work is
   * running now, the calls of its process that wait for it still get its result, but it is not stored, and waiting
   * calls of other processes run it again. A call after `forget` never gets the result of work that began before it.
   *
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   * @throws InvalidLockOptionsError if the key is invalid, and on a quorum
   */
  forget(key: string): Promise<void> {
    return this.#parts.once.forget(key);
  }

  /**
   * Returns the lease that this async context holds through {@link using} or a decorator: the innermost one, or the one
   * for a resource. `leader:<name>` is the term of a leadership, and `cron:<job>` the run of a job. A lost lease is
   * still returned: its `signal` has aborted, and `assertHeld()` throws.
   */
  current(resource?: string): Lease | undefined {
    return this.#parts.client.current(resource);
  }

  /**
   * Like {@link current}, for code that must run under a lock. A lease of several resources counts as lost as soon as
   * one of them is lost.
   *
   * @throws LockNotHeldError if this async context holds no such lease
   * @throws LeaseLostError if the lease was lost
   * @throws InvalidLockOptionsError if the name is invalid; `undefined` is not a name
   */
  currentOrThrow(): Lease;
  currentOrThrow(resource: string): Lease;
  currentOrThrow(...named: string[]): Lease {
    return this.#parts.client.currentOrThrow(...named);
  }

  /**
   * Checks that this async context holds the resource, or all of several, by {@link using} or a decorator. A lease of
   * any mode counts, even a reader's or a permit; `currentOrThrow(resource).mode` is its mode. Sends nothing to Redis.
   *
   * @throws LockNotHeldError if this async context does not hold it
   * @throws LeaseLostError if the lease was lost
   * @throws InvalidLockOptionsError if a name is invalid
   */
  assertLocked(resource: ResourceNames): void {
    this.#parts.client.assertLocked(resource);
  }

  /**
   * Returns the current holders and waiters of a resource from Redis.
   *
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   */
  inspect(resource: string): Promise<LockState> {
    return this.#parts.client.operators.inspect(resource);
  }

  /**
   * Returns the result of {@link inspect} for each resource that is held or has waiters now. Scans all keys of the
   * database, a thousand at a time, until it has found `limit` resources. Use it for dashboards, not in every request.
   *
   * @throws LockUnavailableError if Redis is unreachable, rejects the command, or has too many keys to scan within
   *   `attemptTimeoutMs`
   */
  list(options?: ListOptions): Promise<LockState[]> {
    return this.#parts.client.operators.list(options);
  }

  /**
   * Asks all instances in one message for their leases, waiting calls, leaderships, jobs and health, and returns the
   * answers. `findings` lists problems, the worst first, each with what to do. Scans no keys, and leaves nothing
   * behind. Calls within a second share their answers, even across processes.
   *
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   * @throws InvalidLockOptionsError if an option is invalid, and on a quorum
   */
  fleet(options?: FleetOptions): Promise<LockFleet> {
    return this.#parts.client.fleet(options);
  }

  /**
   * Checks whether a lock could be acquired now, and the state of this process. On every required server, a script
   * writes the same keys as a lock, and leaves nothing behind. Acquires no lock and delays no caller. Resolves even if
   * Redis is down: see `status`. Concurrent checks share one probe.
   *
   * Use it for readiness, not for liveness: a restart does not repair Redis, and loses the locks of this process.
   *
   * @throws InvalidLockOptionsError if an option is invalid
   */
  health(options?: HealthOptions): Promise<LockHealth> {
    return this.#parts.client.health(options);
  }

  /**
   * Explains why a call cannot get a resource: which process holds it, since when, when it was last renewed, who waits,
   * and the likely cause. If calls wait for a live holder, it also asks all instances, to find a deadlock, which takes
   * up to a second. `text` is for people, `cause` for code.
   *
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   * @throws InvalidLockOptionsError if an option or the name is invalid
   */
  explain(resource: string, options?: ExplainOptions): Promise<LockExplanation> {
    return this.#parts.client.operators.explain(resource, options);
  }

  /**
   * Returns which groups of calls in this process have waited for which others, and how long each group waited and held
   * locks. Sends nothing to Redis. The first call starts the count, unless the module option `contention: { fromStart:
   * true }` already has.
   *
   * @throws InvalidLockOptionsError if an option is invalid
   */
  contention(options?: ContentionOptions): Contention {
    return this.#parts.client.operators.contention(options);
  }

  /**
   * Returns the orders in which calls of this process have nested locks, by the groups of their names: up to 1,000,
   * each with the first call sites. Sends nothing to Redis. The event `lockOrder` and a log line report orders that
   * form a cycle.
   */
  lockOrder(): LockOrderEdge[] {
    return this.#parts.client.lockOrder();
  }

  /**
   * Ends a lease of any process, and grants the resource to the next waiter. Only ends the lease with this token: later
   * leases are not affected. The holder's `signal` aborts at its next renewal, after a third of its lease at most.
   * Until then the holder may still be working, so protect its writes with the fencing token.
   *
   * @returns `true` if there was such a lease
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   */
  forceRelease(resource: string, options: ForceReleaseOptions): Promise<boolean> {
    return this.#parts.client.operators.forceRelease(resource, options);
  }

  /**
   * Returns a semaphore, which limits how many callers hold a permit at once across all instances. Creating one sends
   * nothing to Redis, so do it whenever you need one.
   *
   * @throws InvalidLockOptionsError if an option or the name is invalid
   */
  semaphore(resource: string, options: SemaphoreOptions): Semaphore {
    return this.#parts.client.semaphore(resource, options);
  }

  /**
   * Calls the observer with every lock event from now on.
   *
   * @returns a function that removes the observer
   * @throws InvalidLockOptionsError if the observer is not a function
   */
  observe(observer: LockObserver): () => void {
    checkFunction('observer', observer);
    return this.#parts.client.observers.add(observer);
  }

  /**
   * Runs one tick of a job on one instance, for your own scheduler. The cron decorators use it.
   *
   * @returns the result of the work, or `undefined` if another instance has the tick
   * @throws LockUnavailableError if the tick could not be claimed within `lock.waitMs`
   */
  runSingleton<T>(options: SingletonRunOptions, work: SingletonWork<T>): Promise<T | undefined> {
    return this.#parts.singletonRuns.run(options, work);
  }

  /**
   * Makes this instance a candidate for a leadership. One candidate at a time leads, until it resigns, dies or loses
   * its lease. A second call joins the same campaign, with its own callbacks.
   *
   * The leader holds the lock `leader:<name>`, which no other call can acquire. So an ordinary lock may have the same
   * name as a leadership.
   *
   * ```ts
   * const mailer = locks.campaign('mailer', { onElected: (term) => poll(term.signal) });
   * ```
   *
   * @param name the name of the leadership, at most 505 bytes
   * @throws InvalidLockOptionsError if an option or the name is invalid, or `leaseMs` differs from the first call's
   */
  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#parts.client.campaign(name, options);
  }

  /** Returns the running campaign that {@link campaign} or `@LeaderOnly` began on this instance, or `undefined`. */
  leadership(name: string): Leadership | undefined {
    return this.#parts.client.leadership(name);
  }

  /** Called by Nest. From now on, the connections keep the process alive; before, only running calls did. */
  onApplicationBootstrap(): void {
    this.#parts.onStarted?.();
  }

  /** Called by Nest. From now on, the service acquires no locks, and it ends all waits. */
  onModuleDestroy(): void {
    this.#parts.client.beginShutdown();
  }

  /** Called by Nest. Waits up to `shutdown.drainMs` for running work, and closes the connections. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#parts.client.shutdown(this.#parts.drainMs);
  }
}

addInjected({ RedisLockService });
