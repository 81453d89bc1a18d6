import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { CampaignOptions, Leadership } from '../features/leader/core/leadership.js';
import type { LockOrderEdge } from '../kernel/events/events.js';
import type { LockObserver } from '../kernel/events/observers.js';
import { type Lease, type LockedWork, type TryUsingResult, workBeforeOptions } from '../kernel/api/lease.js';
import type { LockClient } from '../kernel/lock-client.js';
import type { FleetOptions, LockFleet } from '../features/fleet/core/roll/lock-fleet.js';
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
import type { WaitUntilFreeOptions } from '../features/watch/core/lock-watches.js';
import { LockModuleMissingError } from '../kernel/api/errors.js';
import { checkFunction } from '../kernel/api/validation.js';
import { addInjected } from './tokens.js';
import { keepParts, type ServiceParts } from './service-parts.js';

/** The locks of this application. */
export class RedisLockService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #parts: ServiceParts;

  constructor(parts: ServiceParts) {
    // JavaScript, and a provider of the class itself, may call it with anything.
    if (typeof (parts as { client?: Partial<LockClient> } | undefined)?.client?.using !== 'function') {
      throw new LockModuleMissingError(
        'RedisLockService is not made by new, and not listed as a provider: RedisLockModule makes it. Import ' +
          'RedisLockModule.forRoot({ connection: ... }) in the root module, and inject the service. In a unit test, use ' +
          'passThroughLocks() of nestjs-redis-lock/testing.',
        '',
      );
    }
    this.#parts = parts;
    keepParts(this, parts);
  }

  /**
   * Acquires a resource, or all of several, and waits up to `waitMs` for it. The caller must release the lease:
   * `await using lease = await locks.acquire('reports')`, or `finally { await lease.release() }`. To lock again further
   * down in the same async context (`mode: 'reentrant'`, `current()`), use {@link using} or a decorator.
   *
   * @throws LockTimeoutError when it stays locked for `waitMs`
   * @throws LockBusyError when it is locked and `waitMs` is 0, or the retry strategy ends the wait
   * @throws LockQueueFullError when `maxWaiters` calls already wait for it
   * @throws LockUnavailableError when Redis cannot be reached within `unavailableMs` or `waitMs`, or refuses
   * @throws LockAbortedError when `signal` aborts
   * @throws LockReentryError when this async context already holds it and would wait for itself
   * @throws LockModeMismatchError when the resource is in use as a semaphore
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option or a name is invalid
   */
  acquire(resource: ResourceNames, options?: LockOptions): Promise<Lease> {
    return this.#parts.client.withOrigin(this.acquire, (origin) =>
      this.#parts.client.acquire(resource, options, origin),
    );
  }

  /**
   * Like {@link acquire}, but resolves to `null` when a resource is busy: locked, not free within `waitMs`, or its
   * queue is full. Waits only with `waitMs` in the options of this call: its default is 0 here, and that of the module
   * does not count. The wait is that of {@link acquire}: in the fair queue, or by the `retry` strategy of this call.
   *
   * @throws the errors of {@link acquire}, except `LockBusyError`, `LockTimeoutError` and `LockQueueFullError`
   */
  tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<Lease | null> {
    return this.#parts.client.withOrigin(this.tryAcquire, (origin) =>
      this.#parts.client.tryAcquire(resource, options, origin),
    );
  }

  /**
   * Does the work under a lease and then releases it. An error of the work passes through untouched. A release that
   * fails is reported to the observers.
   *
   * @throws LeaseLostError if the lease is lost before the work settles. `workFinished` says whether the work ran to its
   *   end, and `value` is its result; with `onLost: 'ignore'`, the call resolves to that instead. If the lease is lost
   *   before the work begins, the work is not called
   * @throws the errors of {@link acquire}
   */
  using<T>(resource: ResourceNames, work: LockedWork<T>): Promise<T>;
  using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T>;
  using<T>(
    resource: ResourceNames,
    optionsOrWork: LockOptions | LockedWork<T> | undefined,
    work?: LockedWork<T>,
  ): Promise<T> {
    // Not by optionsAndWork, which makes an array.
    if (typeof optionsOrWork !== 'function') return this.#parts.client.using(resource, optionsOrWork, work!);
    if (work !== undefined) return Promise.reject(workBeforeOptions('using'));
    return this.#parts.client.using(resource, undefined, optionsOrWork);
  }

  /**
   * Like {@link using}, but does not call the work when a resource is busy: then it resolves to `{ ran: false }`, else
   * to `{ ran: true, value }`. Waits as {@link tryAcquire} does.
   *
   * ```ts
   * const { ran } = await locks.tryUsing('cache', { waitMs: 200 }, () => refresh());
   * ```
   *
   * @throws LeaseLostError as {@link using} does
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
   * Resolves when the resource was free: no holder had it, and no waiter was to be granted it. Takes nothing and has no
   * place in the queue, so it delays no caller. A resource that goes from holder to waiter all the time is never free.
   * Any caller may have taken the resource before this promise resolves. To work while no other caller has it, use
   * {@link using}.
   *
   * @param resource one name; also that of a semaphore, which is free when no permit is held, `leader:<name>` or
   *   `cron:<job>`
   * @throws LockTimeoutError when it was not free within `waitMs`
   * @throws LockUnavailableError when Redis cannot be reached within `unavailableMs`, nor at the end of `waitMs`, or refuses
   * @throws LockAbortedError when `signal` aborts
   * @throws LockReentryError when this async context holds the resource itself
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option or the name is invalid; nothing was sent
   */
  waitUntilFree(resource: string, options?: WaitUntilFreeOptions): Promise<void> {
    return this.#parts.client.watches.waitUntilFree(resource, options);
  }

  /**
   * Returns the lease that this async context holds through {@link using}, a decorator or the interceptor: the
   * innermost one, or the one of a resource. `leader:<name>` is the term of a leadership, and `cron:<job>` the run of a
   * job. A lost lease is still returned: its `signal` has aborted, and `assertHeld()` throws.
   */
  current(resource?: string): Lease | undefined {
    return this.#parts.client.current(resource);
  }

  /**
   * Returns what {@link current} returns, for code that must run under a lock. A composite lease counts as lost as soon
   * as one of its resources is lost.
   *
   * @throws LockNotHeldError when this async context holds no such lease
   * @throws LeaseLostError when the lease was lost
   * @throws InvalidLockOptionsError when the name is invalid; `undefined` is no name
   */
  currentOrThrow(): Lease;
  currentOrThrow(resource: string): Lease;
  currentOrThrow(...named: string[]): Lease {
    return this.#parts.client.currentOrThrow(...named);
  }

  /**
   * Checks that this async context holds the resource, or all of several, by {@link using}, a decorator or the
   * interceptor. A lease of any mode counts, also that of a reader or of a semaphore:
   * `currentOrThrow(resource).mode` says which. Asks only this process, not Redis.
   *
   * @throws LockNotHeldError when this async context does not hold it
   * @throws LeaseLostError when the lease was lost
   * @throws InvalidLockOptionsError when a name is invalid
   */
  assertLocked(resource: ResourceNames): void {
    this.#parts.client.assertLocked(resource);
  }

  /**
   * Returns the holders and the waiters of a resource at this moment, as Redis knows them.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  inspect(resource: string): Promise<LockState> {
    return this.#parts.client.operators.inspect(resource);
  }

  /**
   * Returns what {@link inspect} says about each resource that is held or waited for at this moment. Scans all keys of
   * the database, a thousand at a time, until it has found `limit` resources. It is meant for people and dashboards,
   * not for every request.
   *
   * @throws LockUnavailableError when Redis cannot be reached, refuses, or has too many keys for one `attemptTimeoutMs`
   */
  list(options?: ListOptions): Promise<LockState[]> {
    return this.#parts.client.operators.list(options);
  }

  /**
   * Asks all instances what they hold and wait for, by one message, and returns what each of them answers: its leases
   * and waiting calls, for how long, its leaderships, its jobs and its health. It scans nothing and leaves nothing
   * behind. Callers within a second share one roll call, those of other processes too.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   * @throws InvalidLockOptionsError when an option is invalid, or the store has no roll calls, as a quorum
   */
  fleet(options?: FleetOptions): Promise<LockFleet> {
    return this.#parts.client.fleet(options);
  }

  /**
   * Says whether a lock could be taken now, and how this process is doing. On every server that is needed, a script
   * writes what a lock would, and leaves nothing behind. Takes no lock and delays no caller. Resolves also when Redis
   * is down: then `status` says so. Checks at the same time share one probe.
   *
   * For readiness, not for liveness: a restart mends no Redis, and ends what this process holds.
   *
   * @throws InvalidLockOptionsError when an option is invalid
   */
  health(options?: HealthOptions): Promise<LockHealth> {
    return this.#parts.client.health(options);
  }

  /**
   * Explains in sentences why a call cannot get a resource, from a look at Redis: which process holds it, since when, when
   * it was last renewed, who waits, and the likely cause. Where calls wait for a holder that lives, all instances are asked
   * whether they wait for each other, which takes up to a second. It is meant for people; `cause` is for programs.
   *
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   * @throws InvalidLockOptionsError when an option or the name is invalid
   */
  explain(resource: string, options?: ExplainOptions): Promise<LockExplanation> {
    return this.#parts.client.operators.explain(resource, options);
  }

  /**
   * Returns for which groups the calls of this process have waited, and how long each group waits and holds. Sends
   * nothing. The first call begins to count, unless the module was told to (`contention: { fromStart: true }`).
   *
   * @throws InvalidLockOptionsError when an option is invalid
   */
  contention(options?: ContentionOptions): Contention {
    return this.#parts.client.operators.contention(options);
  }

  /**
   * Returns the orders in which calls of this process have taken locks inside each other, by the groups of their names: up
   * to 1,000, each with the calls that were the first to do so. Sends nothing. Orders that make a circle are told by an
   * event `lockOrder` and a line in the log.
   */
  lockOrder(): LockOrderEdge[] {
    return this.#parts.client.lockOrder();
  }

  /**
   * Ends a lease of any process, and grants the resource to the next waiter. It ends only the lease that was inspected:
   * a lease with a later token stays. The `signal` of the holder aborts with its next renewal, at a third of its lease.
   * Until then the holder may still be working, so protect its writes by the fencing token.
   *
   * @returns whether there was such a lease
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  forceRelease(resource: string, options: ForceReleaseOptions): Promise<boolean> {
    return this.#parts.client.operators.forceRelease(resource, options);
  }

  /**
   * Returns a semaphore: it limits how many callers over the whole fleet hold a permit at once. Sends nothing, so make
   * one whenever you need it.
   *
   * @throws InvalidLockOptionsError when an option or the name is invalid
   */
  semaphore(resource: string, options: SemaphoreOptions): Semaphore {
    return this.#parts.client.semaphore(resource, options);
  }

  /**
   * Calls the observer with every event of the locks from now on.
   *
   * @returns a function that removes the observer
   * @throws InvalidLockOptionsError when the observer is no function
   */
  observe(observer: LockObserver): () => void {
    checkFunction('observer', observer);
    return this.#parts.client.observers.add(observer);
  }

  /**
   * Runs one tick of a job on one instance of the fleet, for schedulers of your own. The cron decorators call it.
   *
   * @returns the result of the work, or `undefined` where another instance has the tick
   * @throws LockUnavailableError when the tick could not be claimed within `lock.waitMs`
   */
  runSingleton<T>(options: SingletonRunOptions, work: SingletonWork<T>): Promise<T | undefined> {
    return this.#parts.singletonRuns.run(options, work);
  }

  /**
   * Makes this instance a candidate for a leadership. Of all instances that campaign for it, one leads at a time, until
   * it resigns, dies or loses its lease. A second call joins the same campaign, with its own callbacks.
   *
   * The leader holds the lock `leader:<name>`, which no other call can take. So an ordinary lock may have the same name
   * as a leadership.
   *
   * ```ts
   * const mailer = locks.campaign('mailer', { onElected: (term) => poll(term.signal) });
   * ```
   *
   * @param name of the leadership, at most 505 bytes
   * @throws InvalidLockOptionsError when an option or the name is invalid, or `leaseMs` differs from that of the first
   *   call
   */
  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#parts.client.campaign(name, options);
  }

  /** Returns the running campaign that {@link campaign} or `@LeaderOnly` began on this instance, or `undefined`. */
  leadership(name: string): Leadership | undefined {
    return this.#parts.client.leadership(name);
  }

  /** Called by Nest. From now on the connections keep the process alive; before, only running calls do. */
  onApplicationBootstrap(): void {
    this.#parts.onStarted?.();
  }

  /** Called by Nest. From now on the service is down, takes no new locks, and ends the waits. */
  onModuleDestroy(): void {
    this.#parts.client.beginShutdown();
  }

  /** Called by Nest. Waits up to `shutdown.drainMs` for running work, and closes the connections. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#parts.client.shutdown(this.#parts.drainMs);
  }
}

addInjected({ RedisLockService });
