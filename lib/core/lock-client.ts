import { setMaxListeners } from 'node:events';
import { Acquisition } from './acquisition.js';
import { ActiveHolds } from './active-holds.js';
import { Alarms } from './alarms.js';
import { ask } from './answer.js';
import { type Clock, SystemClock } from './clock.js';
import type { CompositeLease } from './composite-lease.js';
import { Contention } from './contention.js';
import { InvalidLockOptionsError, LockBusyError, LockReentryError, LockUnavailableError } from './errors.js';
import { type LockObserver, LockObservers } from './events.js';
import type { HeldLease, LeaseWorkings } from './held-lease.js';
import type { Grant } from './hold.js';
import type { Lease } from './lease.js';
import { LockContext } from './lock-context.js';
import {
  LOCK_DEFAULTS,
  type LockDefaults,
  type LockOptions,
  type ResolvedLockOptions,
  resolveLockOptions,
} from './lock-options.js';
import type { LockState, LockStore } from './lock-store.js';
import { createOwnerId } from './owner-id.js';
import { type Random, SystemRandom } from './random.js';
import { checkResource, checkResources, type ResourceNames } from './resource.js';
import { describeValue } from './validation.js';
import { Watchdog } from './watchdog.js';
import { Withdrawals } from './withdrawals.js';

/** Work done under a lease. */
export type LockedWork<T> = (lease: Lease) => T | Promise<T>;

export interface LockClientOptions {
  readonly store: LockStore;
  readonly defaults?: Partial<LockDefaults>;
  readonly observers?: Iterable<LockObserver>;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** How long work that ends at its signal may take to release when the application shuts down. */
const SHUTDOWN_GRACE_MS = 250;

/** The locks of one process on one store. */
export class LockClient {
  readonly observers: LockObservers;
  readonly clock: Clock;
  readonly random: Random;
  /** What gives up waiting for the replies of commands. */
  readonly alarms: Alarms;
  readonly defaults: LockDefaults;
  /** Where acquisitions are given up that may have succeeded unnoticed. */
  readonly withdrawals: Withdrawals;
  readonly #store: LockStore;
  readonly #closing = new AbortController();
  readonly #acquisition: Acquisition;
  /** Those of a call that gives none. */
  readonly #plainOptions: ResolvedLockOptions;
  readonly #workings: LeaseWorkings;
  #shutdown: Promise<void> | undefined;

  constructor(options: LockClientOptions) {
    const { store, clock = new SystemClock(), random = new SystemRandom() } = options;
    const observers = new LockObservers(options.observers);
    this.#store = store;
    this.clock = clock;
    this.random = random;
    this.observers = observers;
    this.alarms = new Alarms(clock);
    this.defaults = { ...LOCK_DEFAULTS, ...options.defaults };
    this.#plainOptions = resolveLockOptions(undefined, this.defaults);
    const watchdog = new Watchdog(store, clock, ({ ownership: { resource }, fencingToken }, cause) => {
      const error = new LockUnavailableError(resource, 'renew', 'failed', cause);
      observers.emit({ type: 'renewalFailed', resource, fencingToken, error });
    });
    const withdrawals = new Withdrawals(store, clock, this.alarms);
    this.withdrawals = withdrawals;
    const context = new LockContext();
    const active = new ActiveHolds();
    // Every poller listens to it; Node would take more than ten for a leak.
    setMaxListeners(0, this.#closing.signal);
    const { alarms } = this;
    const closing = this.#closing.signal;
    const contention = new Contention({ store, clock, random, alarms, withdrawals, closing });
    this.#workings = { store, contention, clock, alarms, observers, watchdog, withdrawals, active, context };
    this.#acquisition = new Acquisition(this.#workings, closing);
  }

  newOwner(): string {
    return createOwnerId(this.#store.clientId, this.random);
  }

  /** Takes charge of a lock that the store has granted. */
  hold(grant: Grant, options: ResolvedLockOptions): HeldLease {
    return this.#acquisition.hold(grant, options);
  }

  /** Aborts when the shutdown begins. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  acquire(resource: ResourceNames, options?: LockOptions): Promise<HeldLease | CompositeLease> {
    // Not async: on the way to Redis every promise counts.
    try {
      const names = checkResources(resource, 'acquire');
      return this.#acquisition.acquire(
        names,
        options ? resolveLockOptions(options, this.defaults) : this.#plainOptions,
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<HeldLease | CompositeLease | null> {
    const names = checkResources(resource, 'tryAcquire');
    const resolved = { ...resolveLockOptions(options, this.defaults), waitMs: 0, retry: undefined };
    try {
      return await this.#acquisition.acquire(names, resolved);
    } catch (error) {
      // Held by this very context: busy, as for everybody else. Nothing waits, so nothing waits for itself.
      if (error instanceof LockBusyError || error instanceof LockReentryError) return null;
      throw error;
    }
  }

  async using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T> {
    if (typeof work !== 'function') {
      throw new InvalidLockOptionsError(
        `using needs a function to run under the lock, not ${describeValue(work)}.`,
        'work',
      );
    }
    return this.runUnder(await this.acquire(resource, options), work);
  }

  /** Runs the work in the async context of the lease, and releases it after that, whatever comes of the work. */
  async runUnder<T>(lease: HeldLease | CompositeLease, work: LockedWork<T>): Promise<T> {
    try {
      return await this.#workings.context.run(lease.bind(), () => work(lease));
    } finally {
      // A release that fails never replaces what the work returned or threw; the observers are told.
      await lease[Symbol.asyncDispose]();
    }
  }

  current(resource?: string): Lease | undefined {
    return this.#workings.context.lease(resource);
  }

  async inspect(resource: string): Promise<LockState> {
    const name = checkResource(resource, 'inspect');
    const command = this.#store.inspect(name);
    const state = await ask(this.alarms, command, this.defaults.attemptTimeoutMs, 'inspect', name);
    const { instanceId } = this.#store;
    if (!this.#workings.contention.isWaitedFor(name) || state.waiters.includes(instanceId)) return state;
    // Behind a holder of this process: they join the queue when it releases.
    return { ...state, waiters: [...state.waiters, instanceId] };
  }

  /**
   * Takes no new locks, turns the waiters away, and gives the holders `drainMs` to end their work. Then their signals
   * abort, and what is still held is renewed no more. Closes the store.
   */
  shutdown(drainMs: number): Promise<void> {
    return (this.#shutdown ??= this.#drainAndClose(drainMs));
  }

  async #drainAndClose(drainMs: number): Promise<void> {
    const { active, watchdog, withdrawals } = this.#workings;
    this.#closing.abort();
    await active.whenEmpty(this.clock, drainMs);
    for (const hold of active.list()) hold.lose('shutdown');
    await active.whenEmpty(this.clock, SHUTDOWN_GRACE_MS);
    await withdrawals.settle(this.defaults.attemptTimeoutMs);
    watchdog.stop();
    this.alarms.stop();
    await this.#store.close();
  }
}
