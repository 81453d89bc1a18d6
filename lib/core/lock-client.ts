import { ActiveHolds } from './active-holds.js';
import { answerWithin } from './answer.js';
import { type Clock, SystemClock } from './clock.js';
import { CompositeLease } from './composite-lease.js';
import { Contention } from './contention.js';
import { LockBusyError, LockError, LockReentryError, LockShutdownError, LockUnavailableError } from './errors.js';
import { LeaseLostError, type LeaseLossReason } from './errors.js';
import { type LockObserver, LockObservers } from './events.js';
import { HeldLease, type LeaseWorkings } from './held-lease.js';
import { type Grant, Hold } from './hold.js';
import type { Lease } from './lease.js';
import { LockContext } from './lock-context.js';
import { LOCK_DEFAULTS, type LockDefaults, type LockOptions, resolveLockOptions } from './lock-options.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { LockState, LockStore, Ownership } from './lock-store.js';
import { type Random, SystemRandom } from './random.js';
import { checkResources, type ResourceNames } from './resource.js';
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
  readonly defaults: LockDefaults;
  readonly #store: LockStore;
  readonly #closing = new AbortController();
  readonly #contention: Contention;
  readonly #workings: LeaseWorkings;
  #shutdown: Promise<void> | undefined;

  constructor(options: LockClientOptions) {
    const { store, clock = new SystemClock(), random = new SystemRandom() } = options;
    const observers = new LockObservers(options.observers);
    this.#store = store;
    this.clock = clock;
    this.random = random;
    this.observers = observers;
    this.defaults = { ...LOCK_DEFAULTS, ...options.defaults };
    const watchdog = new Watchdog(store, clock, ({ ownership: { resource }, fencingToken }, cause) => {
      const error = new LockUnavailableError(resource, 'renew', 'failed', cause);
      observers.emit({ type: 'renewalFailed', resource, fencingToken, error });
    });
    const withdrawals = new Withdrawals(store, clock);
    const context = new LockContext();
    const active = new ActiveHolds();
    this.#workings = { store, clock, observers, watchdog, withdrawals, active, context };
    this.#contention = new Contention(store, clock, random, withdrawals, this.#closing.signal);
  }

  /** A new owner id: whoever knows it can release what it owns. */
  newOwner(): string {
    return `${this.#store.instanceId}/${this.random.id()}`;
  }

  /** Gives up an acquisition that may have succeeded unnoticed. */
  withdraw(ownership: Ownership, options: ResolvedLockOptions): void {
    this.#workings.withdrawals.start(ownership, options, false);
  }

  /** Aborts when the shutdown begins. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async acquire(resource: ResourceNames, options?: LockOptions): Promise<HeldLease | CompositeLease> {
    const names = checkResources(resource, 'acquire');
    return this.#acquire(names, resolveLockOptions(options, this.defaults));
  }

  async tryAcquire(resource: ResourceNames, options?: LockOptions): Promise<HeldLease | CompositeLease | null> {
    const names = checkResources(resource, 'tryAcquire');
    const resolved = { ...resolveLockOptions(options, this.defaults), waitMs: 0, retry: undefined };
    try {
      return await this.#acquire(names, resolved);
    } catch (error) {
      // Held by this very context: busy, as for everybody else. Nothing waits, so nothing waits for itself.
      if (error instanceof LockBusyError || error instanceof LockReentryError) return null;
      throw error;
    }
  }

  async using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T> {
    return this.runUnder(await this.acquire(resource, options), work);
  }

  /** Runs the work in the async context of the lease, and releases it after that, whatever comes of the work. */
  async runUnder<T>(lease: HeldLease | CompositeLease, work: LockedWork<T>): Promise<T> {
    try {
      return await this.#workings.context.run(lease.bind(), lease.holds, () => work(lease));
    } finally {
      // A release that fails never replaces what the work returned or threw; the observers are told.
      await lease[Symbol.asyncDispose]();
    }
  }

  current(resource?: string): Lease | undefined {
    return this.#workings.context.lease(resource);
  }

  async inspect(resource: string): Promise<LockState> {
    const [name] = checkResources(resource, 'inspect');
    const answer = await answerWithin(this.clock, this.#store.inspect(name!), this.defaults.attemptTimeoutMs);
    if (answer.outcome === 'answered') return answer.value;
    const outcome = answer.outcome === 'timeout' ? 'timeout' : 'failed';
    throw new LockUnavailableError(resource, 'inspect', outcome, 'error' in answer ? answer.error : undefined);
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
    await this.#store.close();
  }

  async #acquire(names: readonly string[], options: ResolvedLockOptions): Promise<HeldLease | CompositeLease> {
    try {
      return names.length === 1 ? await this.#acquireOne(names[0]!, options) : await this.#acquireAll(names, options);
    } catch (error) {
      if (error instanceof LockError) {
        this.observers.emit({ type: 'notAcquired', resource: names.join(', '), error });
      }
      throw error;
    }
  }

  async #acquireOne(resource: string, options: ResolvedLockOptions): Promise<HeldLease> {
    const held = this.#workings.context.hold(resource);
    if (held) return this.#enterAgain(held, options);
    if (this.#closing.signal.aborted) throw new LockShutdownError(resource);
    return this.hold(await this.#contention.acquire(resource, options), options);
  }

  /** Takes charge of a lock that the store has granted. */
  hold(grant: Grant, options: ResolvedLockOptions): HeldLease {
    const hold = new Hold(grant, options, this.clock, (lost, reason) => this.#onLost(lost, reason));
    this.#workings.active.add(hold);
    this.#workings.watchdog.watch(hold);
    const { ownership, fencingToken, waitedMs, attempts } = grant;
    const { resource, mode } = ownership;
    this.observers.emit({ type: 'acquired', resource, mode, fencingToken, waitedMs, attempts });
    return new HeldLease(hold, this.#workings);
  }

  /** In the order of the names, which is the same everywhere: no two callers can wait for each other. */
  async #acquireAll(names: readonly string[], options: ResolvedLockOptions): Promise<CompositeLease> {
    const giveUpAt = this.clock.now() + options.waitMs;
    const leases: HeldLease[] = [];
    try {
      for (const name of names) {
        const waitMs = options.waitMs === 0 ? 0 : Math.max(1, giveUpAt - this.clock.now());
        leases.push(await this.#acquireOne(name, { ...options, waitMs }));
      }
      for (const lease of leases) lease.assertHeld();
      return new CompositeLease(leases);
    } catch (error) {
      await Promise.allSettled(leases.toReversed().map((lease) => lease.end()));
      throw error;
    }
  }

  async #enterAgain(hold: Hold, options: ResolvedLockOptions): Promise<HeldLease> {
    const { resource, mode } = hold.ownership;
    if (mode !== 'reentrant' || options.mode !== 'reentrant') {
      throw LockReentryError.waitingForItself(resource, mode, options.mode);
    }
    hold.depth++;
    const lease = new HeldLease(hold, this.#workings);
    const answer = await hold.inOrder(async () => {
      const sentAt = this.clock.now();
      const leaseMs = hold.renewalMs();
      const command = this.#store.setDepth(hold.ownership, hold.depth, leaseMs);
      const result = await answerWithin(this.clock, command, options.attemptTimeoutMs);
      if (result.outcome === 'answered' && result.value) hold.confirm(sentAt, leaseMs);
      return result;
    });
    if (answer.outcome === 'answered' && !answer.value) hold.lose('takenOver');
    if (answer.outcome === 'answered' && hold.isHeld()) return lease;
    await lease.end().catch(() => {});
    if (answer.outcome === 'timeout' || answer.outcome === 'failed') {
      throw new LockUnavailableError(resource, 'enter again', answer.outcome, answer.error);
    }
    throw new LeaseLostError(resource, 'takenOver', hold.fencingToken);
  }

  #onLost(hold: Hold, reason: LeaseLossReason): void {
    const { active, watchdog, observers } = this.#workings;
    watchdog.unwatch(hold);
    // At a shutdown the work may still release in the time of grace; otherwise nobody may ever do it.
    if (reason !== 'shutdown') active.delete(hold);
    observers.emit({ type: 'lost', resource: hold.ownership.resource, fencingToken: hold.fencingToken, reason });
  }
}
