import { nullIfBusy } from './acquiring/acquire-errors.js';
import { LocalQueues } from './acquiring/local-queues.js';
import { type Lease, type LockedWork, optionsAndWork, type TryUsingResult } from './api/lease.js';
import { LockNotHeldError } from './api/lease-errors.js';
import {
  isFixed,
  type LockOptions,
  type ResolvedDefaults,
  type ResolvedLockOptions,
  resolveLockOptions,
  SharedOptions,
} from './api/lock-options.js';
import {
  assertSupported,
  checkClearResource,
  checkOwnResource,
  checkResource,
  checkResources,
  type ResourceNames,
} from './api/resource.js';
import { checkWork } from './api/work.js';
import type { LockOrderEdge } from './events/events.js';
import type { LockObservers } from './events/observers.js';
import type { LockStats } from './events/telemetry.js';
import type { HealthOptions, LockHealth } from '../features/fleet/core/health/health-checks.js';
import type { OperatorsView } from '../features/fleet/core/operators.js';
import { type LockFleet, SEEN_RUNS } from '../features/fleet/core/findings/finding.js';
import { survey } from '../features/fleet/core/findings/survey.js';
import type { FleetOptions, FleetReport } from '../features/fleet/core/roll/lock-fleet.js';
import type { ClientJobs } from '../features/jobs/core/client-jobs.js';
import type { CampaignOptions, Leadership } from '../features/leader/core/leadership.js';
import type { LockWatches } from '../features/watch/core/lock-watches.js';
import { drain } from './holding/lock-context.js';
import type { Runtime } from './holding/runtime.js';
import type { Acquired } from './lease/composite-lease.js';
import type { KernelParts } from './lease/kernel-parts.js';
import type { LeaseFactory } from './lease/lease-factory.js';
import type { SingleLease } from './lease/single-lease.js';
import type { OpenTransaction } from './lease/transaction-leases.js';
import { Semaphore } from './semaphore/semaphore.js';
import { checkSemaphoreOptions, type SemaphoreOptions } from './semaphore/semaphore-options.js';
import type { LockState } from './store/lock-state.js';
import type { Origin } from './util/call-site.js';
import { quote } from './util/quoted.js';
import { type LockClientOptions, type LockParts, wire } from './wire.js';

/** Time that work has to release its locks after its signal has aborted at a shutdown. */
const SHUTDOWN_GRACE_MS = 250;

/** The locks of one process on one store. */
export class LockClient {
  readonly observers: LockObservers;
  readonly operators: OperatorsView;
  readonly watches: LockWatches;
  readonly jobs: ClientJobs;
  /** Its parts, also for the testing kit. */
  readonly deps: KernelParts;
  readonly leases: LeaseFactory;
  /** Returns the locks that this process holds, waits for and still has to release at this moment. */
  readonly stats: () => LockStats;
  readonly #parts: LockParts;
  readonly #plainOptions: ResolvedLockOptions;
  /** The options of decorated methods, resolved once. */
  readonly #fixedOptions = new WeakMap<LockOptions, ResolvedLockOptions>();
  readonly #sharedOptions = new SharedOptions();
  readonly #tryDefaults: ResolvedDefaults;
  readonly #checkName: typeof checkOwnResource;
  #shutdown: Promise<void> | undefined;

  constructor(options: LockClientOptions) {
    this.#parts = wire(options, {
      createQueues: (runtime) => this.createQueues(runtime),
      lead: (resource, lock) => this.lead(resource, lock),
    });
    const { deps, leases, stats, operators, watches, jobs } = this.#parts;
    this.deps = deps;
    this.leases = leases;
    this.stats = stats;
    this.operators = operators;
    this.watches = watches;
    this.jobs = jobs;
    this.observers = deps.observers;
    this.#plainOptions = resolveLockOptions(undefined, deps.defaults);
    this.#tryDefaults = { ...deps.defaults, waitMs: 0 };
    this.#checkName = options.suspiciousNames === 'allow' ? checkOwnResource : checkClearResource;
  }

  get closing(): AbortSignal {
    return this.deps.closing;
  }

  /** Called by the constructor. */
  protected createQueues(runtime: Runtime): LocalQueues {
    return new LocalQueues(runtime);
  }

  protected lead(resource: string, options: ResolvedLockOptions): SingleLease | Promise<SingleLease> {
    return this.leases.acquireOne(resource, options);
  }

  /**
   * The lease of a caller that needs one and has taken none.
   *
   * @param resource `undefined` for any
   * @throws LockNotHeldError
   */
  protected leaseFor(resource: string | undefined): Lease {
    throw new LockNotHeldError(resource, this.deps.context.resources());
  }

  /** Counts the calls that wait for a resource, without the candidates of leaderships. Visits every resource in use. */
  countWaiting(): number {
    return this.deps.localQueues.countWaiting();
  }

  /** Begins a call for a lease that the user has to release. @param below the function that the user has called */
  withOrigin<T>(below: (...args: never[]) => unknown, begin: (origin: Origin) => T): T {
    return this.deps.leaks.withOrigin(below, begin);
  }

  acquire(resource: ResourceNames, options?: LockOptions, origin?: Origin): Promise<Acquired> {
    // Not async, because every promise on the way to Redis costs.
    try {
      const names = this.#namesOf(resource, 'acquire', options);
      return this.leases.acquire(names, options ? this.#resolve(options) : this.#plainOptions, origin);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param call what the names were passed to; a decorated method is named instead */
  #namesOf(resource: ResourceNames, call: string, options: LockOptions | undefined): readonly string[] {
    const isDecorated = options !== undefined && isFixed(options);
    return checkResources(resource, (isDecorated && options.group) || call, this.#checkName);
  }

  #resolve(options: LockOptions): ResolvedLockOptions {
    const known = this.#fixedOptions.get(options);
    if (known) return known;
    const resolved = resolveLockOptions(options, this.deps.defaults);
    if (!isFixed(options)) return this.#sharedOptions.share(resolved);
    this.#fixedOptions.set(options, resolved);
    return resolved;
  }

  async tryAcquire(resource: ResourceNames, options?: LockOptions, origin?: Origin): Promise<Acquired | null> {
    const names = this.#namesOf(resource, 'tryAcquire', options);
    try {
      const resolved = resolveLockOptions(options, this.#tryDefaults);
      return await this.leases.acquire(names, this.#sharedOptions.share(resolved), origin);
    } catch (error) {
      return nullIfBusy(error);
    }
  }

  async tryUsing<T>(
    resource: ResourceNames,
    optionsOrWork: LockOptions | LockedWork<T> | undefined,
    maybeWork?: LockedWork<T>,
  ): Promise<TryUsingResult<T>> {
    const [options, work] = optionsAndWork(optionsOrWork, maybeWork, 'tryUsing');
    const transaction = this.leases.transactions?.current();
    if (transaction) return this.#usingIn(transaction, 'tryUsing', resource, options, work);
    const lease = await this.tryAcquire(resource, options);
    return lease ? { ran: true, value: await this.leases.runUnder(lease, work, options?.onLost) } : { ran: false };
  }

  using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T> {
    // Not async, as `acquire`.
    try {
      checkWork(work);
      const transaction = this.leases.transactions?.current();
      // It is never refused without an error.
      if (transaction) return this.#usingIn(transaction, 'using', resource, options, work).then(({ value }) => value!);
      return this.leases.runUnder(this.acquire(resource, options), work, options?.onLost);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #usingIn<T>(
    transaction: OpenTransaction,
    call: 'using' | 'tryUsing',
    resource: ResourceNames,
    options: LockOptions | undefined,
    work: LockedWork<T>,
  ): Promise<TryUsingResult<T>> {
    const mayBeRefused = call === 'tryUsing';
    const names = this.#namesOf(resource, call, options);
    const defaults = mayBeRefused ? this.#tryDefaults : this.deps.defaults;
    return transaction.using(names, resolveLockOptions(options ?? undefined, defaults), mayBeRefused, work);
  }

  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#parts.campaigns.campaign(name, options);
  }

  leadership(name: string): Leadership | undefined {
    return this.#parts.campaigns.get(name);
  }

  current(resource?: string): Lease | undefined {
    return this.deps.context.lease(resource);
  }

  /** @param named the resource, if the caller names one; not `undefined`, which would mean any lock */
  currentOrThrow(...named: readonly string[]): Lease {
    const resource = named.length === 0 ? undefined : checkResource(named[0], 'currentOrThrow');
    return this.#heldLease(resource);
  }

  assertLocked(resource: ResourceNames): void {
    for (const name of checkResources(resource, 'assertLocked', checkResource)) this.#heldLease(name);
  }

  #heldLease(resource: string | undefined): Lease {
    const { context } = this.deps;
    const lease = context.lease(resource);
    if (lease === undefined) return this.leaseFor(resource);
    lease.assertHeld();
    return lease;
  }

  health(options?: HealthOptions): Promise<LockHealth> {
    return this.#parts.health.check(options);
  }

  /** The reports of all instances, without findings. @throws LockUnavailableError */
  report(options?: FleetOptions): Promise<FleetReport> {
    return this.#parts.fleet.report(options);
  }

  async fleet(options?: FleetOptions): Promise<LockFleet> {
    const fleet = this.report(options);
    const { findings } = await survey({ fleet, health: this.health(), jobs: this.jobs.seen(SEEN_RUNS) });
    return { ...(await fleet), findings };
  }

  inspect(resource: string): Promise<LockState> {
    return this.operators.inspect(resource);
  }

  lockOrder(): LockOrderEdge[] {
    return this.deps.lockOrder.list();
  }

  semaphore(resource: string, options: SemaphoreOptions): Semaphore {
    const name = this.#checkName(resource, 'semaphore');
    const permits = checkSemaphoreOptions(options, `semaphore(${quote(name)})`);
    assertSupported('semaphore', name, this.deps.store.noSemaphores);
    return new Semaphore(name, permits, this.deps, this.leases);
  }

  /** Refuses new locks and ends all waits, except inside of work that holds a lease. */
  beginShutdown(): void {
    this.#parts.close.abort();
  }

  /**
   * Does that. Holders have `drainMs` to end their work, and may take further locks for it.
   * After that their signals abort, and leases that are still held are no longer renewed. Closes the store.
   */
  shutdown(drainMs: number): Promise<void> {
    return (this.#shutdown ??= this.#drainAndClose(drainMs));
  }

  async #drainAndClose(drainMs: number): Promise<void> {
    const { store, clock, alarms, defaults, active, leaks, watchdog, orphanReleases } = this.deps;
    this.beginShutdown();
    await drain(this.deps, drainMs);
    this.#parts.drain.abort();
    for (const hold of active.list()) hold.lose('shutdown');
    await active.whenEmpty(clock, SHUTDOWN_GRACE_MS);
    await orphanReleases.settle(defaults.attemptTimeoutMs);
    watchdog.stop();
    leaks.stop();
    alarms.stop();
    this.#parts.fleet.stop();
    await store.close();
    this.#parts.telemetries.stop();
  }
}
