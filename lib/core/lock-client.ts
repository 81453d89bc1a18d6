import { setMaxListeners } from 'node:events';
import { LeaseFactory } from './lease/lease-factory.js';
import { ActiveHolds } from './holding/active-holds.js';
import { Alarms } from './util/alarms.js';
import { ADOPT_OPTION_NAMES, type AdoptOptions, Adoption } from './lease/adoption.js';
import type { CampaignOptions } from './leader/campaign-options.js';
import { Campaigns } from './leader/campaigns.js';
import { type Clock, SYSTEM_CLOCK } from './util/clock.js';
import type { CompositeLease } from './lease/composite-lease.js';
import { LocalQueues } from './acquiring/local-queues.js';
import { LockBusyError, LockUnavailableError } from './api/errors.js';
import { LockReentryError } from './api/lease-errors.js';
import { type LockObserver, LockObservers } from './api/events.js';
import type { SingleLease } from './lease/single-lease.js';
import type { Grant } from './holding/hold.js';
import type { Leadership } from './leader/leadership.js';
import type { Lease, LockedWork } from './api/lease.js';
import { Leaks, type OnLeak } from './lease/leaks.js';
import type { Origin } from './util/call-site.js';
import type { LeaseDeps } from './lease/lease-deps.js';
import { LockContext } from './holding/lock-context.js';
import {
  LOCK_DEFAULTS,
  type LockDefaults,
  type LockOptions,
  type ResolvedLockOptions,
  resolveLockOptions,
} from './api/lock-options.js';
import { checkWork, checkKnownOptions } from './api/validation.js';
import type { LockState, LockStore } from './store/lock-store.js';
import { OperatorsView } from './operators.js';
import { createOwnerId } from './store/owner-id.js';
import { type Random, SystemRandom } from './util/random.js';
import { checkIsKept, checkOwnResource, checkResources, type ResourceNames } from './api/resource.js';
import { Semaphore } from './semaphore/semaphore.js';
import { checkSemaphoreOptions, type SemaphoreOptions } from './semaphore/semaphore-options.js';
import { decodeLeases } from './lease/transfer-text.js';
import { Watchdog } from './holding/watchdog.js';
import { OrphanReleases } from './store/orphan-releases.js';
import { quote } from './util/quoted.js';

export interface LockClientOptions {
  readonly store: LockStore;
  readonly defaults?: Partial<LockDefaults>;
  readonly observers?: Iterable<LockObserver>;
  readonly clock?: Clock;
  readonly random?: Random;
  /** @default 'warn' */
  readonly onLeak?: OnLeak;
}

/** How long work may take to release its locks after its signal has aborted at a shutdown. */
const SHUTDOWN_GRACE_MS = 250;

/** The locks of one process on one store. */
export class LockClient {
  readonly observers: LockObservers;
  readonly clock: Clock;
  readonly random: Random;
  /** The time limits of commands. */
  readonly alarms: Alarms;
  readonly defaults: LockDefaults;
  /** Releases of acquisitions that were given up and may have succeeded unnoticed. */
  readonly orphanReleases: OrphanReleases;
  readonly #store: LockStore;
  readonly #closing = new AbortController();
  /** What operators see and do. */
  readonly operators: OperatorsView;
  readonly #leaseFactory: LeaseFactory;
  readonly #adoption: Adoption;
  readonly #campaigns: Campaigns;
  /** The options of a call that passes none. */
  readonly #plainOptions: ResolvedLockOptions;
  readonly #deps: LeaseDeps;
  #shutdown: Promise<void> | undefined;

  constructor(options: LockClientOptions) {
    const { store, clock = SYSTEM_CLOCK, random = new SystemRandom() } = options;
    const observers = new LockObservers(options.observers);
    this.#store = store;
    this.clock = clock;
    this.random = random;
    this.observers = observers;
    this.alarms = new Alarms(clock);
    this.defaults = { ...LOCK_DEFAULTS, ...options.defaults };
    this.#plainOptions = resolveLockOptions(undefined, this.defaults);
    const watchdog = new Watchdog(store, clock, ({ storeLease, fencingToken }, cause) => {
      const { resource } = storeLease.owner;
      const error = new LockUnavailableError(resource, 'renew', 'failed', cause);
      observers.emit({ type: 'renewalFailed', resource, fencingToken, error });
    });
    const orphanReleases = new OrphanReleases(store, clock, this.alarms);
    this.orphanReleases = orphanReleases;
    const context = new LockContext();
    const active = new ActiveHolds();
    // Every poller listens to it, and Node would warn of a leak at more than ten.
    setMaxListeners(0, this.#closing.signal);
    const { alarms } = this;
    const closing = this.#closing.signal;
    const localQueueDeps = { store, clock, random, alarms, orphanReleases, closing };
    const localQueues = new LocalQueues(localQueueDeps);
    const newOwnerId = () => this.newOwnerId();
    const leaks = new Leaks(active, observers, clock, watchdog, options.onLeak ?? 'warn');
    const shared = {
      store,
      localQueues,
      clock,
      alarms,
      observers,
      watchdog,
      orphanReleases,
      active,
      context,
      newOwnerId,
    };
    this.#deps = { ...shared, leaks, limit: this.defaults };
    const leaseFactory = (this.#leaseFactory = new LeaseFactory(this.#deps, closing));
    this.#adoption = new Adoption(localQueueDeps, leaseFactory);
    this.operators = new OperatorsView(store, localQueues, alarms, this.defaults.attemptTimeoutMs);
    const acquire = (resource: string, lock: ResolvedLockOptions) => leaseFactory.acquireOne(resource, lock);
    this.#campaigns = new Campaigns({ clock, random, observers, context, acquire }, this.defaults, closing);
  }

  newOwnerId(): string {
    return createOwnerId(this.#store.clientId, this.random);
  }

  /** Takes charge of a lock that the store has granted. */
  hold(grant: Grant, options: ResolvedLockOptions): SingleLease {
    return this.#leaseFactory.hold(grant, options);
  }

  /** Aborts when the shutdown begins. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Where the running call comes from, for a lease that the user has to release.
   *
   * @param below the function that the user has called
   */
  origin(below: (...args: never[]) => unknown): Origin {
    return this.#deps.leaks.origin(below);
  }

  acquire(resource: ResourceNames, options?: LockOptions, origin?: Origin): Promise<SingleLease | CompositeLease> {
    // Not async, because every promise on the way to Redis costs.
    try {
      const names = checkResources(resource, 'acquire');
      return this.#leaseFactory.acquire(
        names,
        options ? resolveLockOptions(options, this.defaults) : this.#plainOptions,
        origin,
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async tryAcquire(
    resource: ResourceNames,
    options?: LockOptions,
    origin?: Origin,
  ): Promise<SingleLease | CompositeLease | null> {
    const names = checkResources(resource, 'tryAcquire');
    const resolved = { ...resolveLockOptions(options, this.defaults), waitMs: 0, retry: undefined };
    try {
      return await this.#leaseFactory.acquire(names, resolved, origin);
    } catch (error) {
      // Held by this very context, which means busy, as for any other caller. A call that never waits cannot wait for
      // itself.
      if (error instanceof LockBusyError || error instanceof LockReentryError) return null;
      throw error;
    }
  }

  async using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T> {
    checkWork(work);
    return this.runUnder(await this.acquire(resource, options), work);
  }

  /**
   * Runs the work in the async context of the lease, and then releases the lease, even if the work throws.
   *
   * @throws LeaseLostError when the lease was lost before the work began: then the work was not called
   */
  async runUnder<T>(lease: SingleLease | CompositeLease, work: LockedWork<T>): Promise<T> {
    try {
      return await this.#deps.context.run(lease, () => {
        // The process may have been suspended since the grant.
        lease.assertHeld();
        return work(lease.bind());
      });
    } finally {
      // A failed release never replaces what the work returned or threw. The observers are told of it.
      await lease[Symbol.asyncDispose]();
    }
  }

  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#campaigns.campaign(name, options);
  }

  leadership(name: string): Leadership | undefined {
    return this.#campaigns.get(name);
  }

  current(resource?: string): Lease | undefined {
    return this.#deps.context.lease(resource);
  }

  inspect(resource: string): Promise<LockState> {
    return this.operators.inspect(resource);
  }

  /** @throws InvalidLockOptionsError */
  semaphore(resource: string, options: SemaphoreOptions): Semaphore {
    const name = checkOwnResource(resource, 'semaphore');
    const permits = checkSemaphoreOptions(options, `semaphore(${quote(name)})`);
    checkIsKept('semaphore', name, this.#store.noSemaphores);
    return new Semaphore(name, permits, {
      acquire: (each, resolved, origin) => this.#leaseFactory.acquire([each], resolved, origin),
      origin: (below) => this.origin(below),
      resolve: (lock, request) => resolveLockOptions(lock, this.defaults, request),
      runUnder: (lease, work) => this.runUnder(lease, work),
      inspect: (each) => this.operators.inspect(each),
      resize: (each, total) => this.operators.resize(each, total),
    });
  }

  async adopt(text: string, options: AdoptOptions = {}, origin?: Origin): Promise<SingleLease | CompositeLease> {
    checkKnownOptions('adopt', options, ADOPT_OPTION_NAMES);
    const parts = decodeLeases(text);
    const leaseMs = options.leaseMs ?? parts.reduce((longest, part) => Math.max(longest, part.leaseMs), 0);
    const lease = await this.#adoption.adopt(parts, resolveLockOptions({ ...options, leaseMs }, this.defaults));
    return origin ? this.#deps.leaks.track(lease, origin) : lease;
  }

  /**
   * Refuses new locks and ends all waits. Holders have `drainMs` to end their work. After that their signals abort, and
   * leases that are still held are no longer renewed. Closes the store.
   */
  shutdown(drainMs: number): Promise<void> {
    return (this.#shutdown ??= this.#drainAndClose(drainMs));
  }

  async #drainAndClose(drainMs: number): Promise<void> {
    const { active, leaks, watchdog, orphanReleases } = this.#deps;
    this.#closing.abort();
    await active.whenEmpty(this.clock, drainMs);
    for (const hold of active.list()) hold.lose('shutdown');
    await active.whenEmpty(this.clock, SHUTDOWN_GRACE_MS);
    await orphanReleases.settle(this.defaults.attemptTimeoutMs);
    watchdog.stop();
    leaks.stop();
    this.alarms.stop();
    await this.#store.close();
  }
}
