import { setMaxListeners } from 'node:events';
import { LeaseFactory } from './lease/lease-factory.js';
import { ActiveHolds, drain, LockContext } from './holding/lock-context.js';
import { Alarms } from './util/alarms.js';
import { LocalQueues } from './acquiring/local-queues.js';
import { LockNotHeldError } from './api/lease-errors.js';
import type { CampaignOptions, Leadership } from '../features/leader/core/leadership.js';
import { Campaigns } from '../features/leader/core/campaigns.js';
import { type Clock, type Random, SYSTEM_CLOCK, SystemRandom } from './util/clock.js';
import type { CompositeLease } from './lease/composite-lease.js';
import { nullIfBusy } from './acquiring/acquire-errors.js';
import type { LockOrderEdge } from './events/events.js';
import { type GroupFunction, Groups, type LockObserver, LockObservers } from './events/observers.js';
import { type LockStats, type LockTelemetry, Telemetries } from './events/telemetry.js';
import type { ContentionSettings } from '../features/fleet/core/contention/contention.js';
import type { SingleLease } from './lease/single-lease.js';
import { type Lease, type LockedWork, optionsAndWork, type TryUsingResult } from './api/lease.js';
import { Leaks, type OnLeak } from './lease/leaks.js';
import type { Origin } from './util/call-site.js';
import type { LeaseDeps } from './lease/lease-deps.js';
import { LockOrder } from './holding/lock-order.js';
import {
  isFixed,
  type LockDefaults,
  type LockOptions,
  type ResolvedDefaults,
  type ResolvedLockOptions,
  resolveLockDefaults,
  resolveLockOptions,
} from './api/lock-options.js';
import { checkWork } from './api/validation.js';
import type { LockState } from './store/lock-state.js';
import type { LockStore } from './store/lock-store.js';
import { DeadlockWatch } from './deadlocks/deadlock-watch.js';
import { FleetView } from '../features/fleet/core/roll/fleet-view.js';
import type { FleetOptions, LockFleet } from '../features/fleet/core/roll/lock-fleet.js';
import { HealthChecks, type HealthOptions, type LockHealth } from '../features/fleet/core/health/health-checks.js';
import { OperatorsView } from '../features/fleet/core/operators.js';
import type { Runtime } from './holding/runtime.js';
import { SingletonRuns } from '../features/jobs/core/singleton-runs.js';
import { JobRecords } from '../features/jobs/core/job-records.js';
import { MissedTicks } from '../features/jobs/core/missed-ticks.js';
import type { JobStore } from '../features/jobs/core/job-store.js';
import {
  checkClearResource,
  assertSupported,
  checkOwnResource,
  checkResource,
  checkResources,
  type ResourceNames,
} from './api/resource.js';
import { Semaphore } from './semaphore/semaphore.js';
import { checkSemaphoreOptions, type SemaphoreOptions } from './semaphore/semaphore-options.js';
import { type OpenTransaction, TransactionLeases } from './lease/transaction-leases.js';
import type { TransactionHooks } from './api/transactions.js';
import { Watchdog } from './holding/watchdog.js';
import { LockWatches } from '../features/watch/core/lock-watches.js';
import { Observation } from './tracing/observation.js';
import { OrphanReleases } from './store/orphan-releases.js';
import { PlaceKeeper } from './places/place-keeper.js';
import { quote } from './util/quoted.js';

export interface LockClientOptions {
  readonly store: LockStore;
  readonly defaults?: Partial<LockDefaults>;
  readonly observers?: Iterable<LockObserver>;
  readonly clock?: Clock;
  readonly random?: Random;
  /** @default 'warn' */
  readonly onLeak?: OnLeak;
  /** Set if leases last until the end of a database transaction. @default none */
  readonly transactions?: TransactionHooks | undefined;
  /** The name of the lock service. @default 'default' */
  readonly service?: string | undefined;
  /** The group of a resource whose call states none. @default the text before its first colon */
  readonly group?: GroupFunction | undefined;
  /** `true` if every call has its group in its label. @default false */
  readonly labelGroups?: boolean;
  /** Accepts or refuses names such as `order:undefined`. @default 'refuse' */
  readonly suspiciousNames?: 'refuse' | 'allow';
  readonly telemetry?: readonly LockTelemetry[];
  /** @default counts from the first look */
  readonly contention?: ContentionSettings | undefined;
  /** Called with a warning when a user callback fails outside of a call. @default not called */
  readonly warn?: (line: string) => void;
}

/** Time that work has to release its locks after its signal has aborted at a shutdown. */
const SHUTDOWN_GRACE_MS = 250;

/** The locks of one process on one store. */
export class LockClient {
  readonly observers: LockObservers;
  readonly operators: OperatorsView;
  readonly watches: LockWatches;
  /** Its parts, also for the testing kit. */
  readonly deps: LeaseDeps;
  readonly leases: LeaseFactory;
  readonly #missedTicks: MissedTicks[] = [];
  readonly #jobRecords: JobRecords[] = [];
  readonly #closing = new AbortController();
  readonly #drained = new AbortController();
  readonly #campaigns: Campaigns;
  readonly #health: HealthChecks;
  readonly #fleet: FleetView;
  readonly #plainOptions: ResolvedLockOptions;
  /** The options of decorated methods, resolved once. */
  readonly #fixedOptions = new WeakMap<LockOptions, ResolvedLockOptions>();
  readonly #tryDefaults: ResolvedDefaults;
  readonly #telemetries: Telemetries;
  readonly #warn: (line: string) => void;
  readonly #checkName: typeof checkOwnResource;
  #shutdown: Promise<void> | undefined;

  constructor(options: LockClientOptions) {
    const { store, clock = SYSTEM_CLOCK, random = new SystemRandom() } = options;
    const { service, warn = () => {} } = options;
    const observers = new LockObservers(options.observers, service, new Groups(options.group, warn));
    const defaults = { ...options.defaults, ...resolveLockDefaults(options.defaults ?? {}) };
    const alarms = new Alarms(clock);
    const orphanReleases = new OrphanReleases(store, clock, alarms);
    const closing = this.#closing.signal;
    const drained = this.#drained.signal;
    // Every poller listens to one, and Node would warn of a leak at more than ten.
    setMaxListeners(0, closing, drained);
    const context = new LockContext();
    const observation = new Observation(observers, clock);
    const runtime: Runtime = {
      store,
      clock,
      random,
      alarms,
      observers,
      observation,
      orphanReleases,
      places: new PlaceKeeper({ store, clock, random, alarms }),
      closing,
      drained,
      shutdownSignal: () => (context.isInWork() ? drained : closing),
      currentHolds: () => context.held(),
      deadlocks: store.rollCalls && new DeadlockWatch({ clock, alarms }, () => this.#fleet.nestedWaits()),
      lockOrder: new LockOrder(observers, clock, warn),
      defaults,
    };
    const watchdog = new Watchdog(store, clock, observers, observation);
    const active = new ActiveHolds();
    const localQueues = this.createQueues(runtime);
    const leaks = new Leaks(active, observers, clock, watchdog, options.onLeak ?? 'warn', observation);
    const deps = { ...runtime, localQueues, watchdog, active, context, leaks };
    const leases = new LeaseFactory(deps);
    leases.labelsGroups = options.labelGroups ?? false;
    if (options.transactions) leases.transactions = new TransactionLeases(options.transactions, deps, leases);
    const acquire = (resource: string, lock: ResolvedLockOptions) => this.lead(resource, lock);
    this.observers = observers;
    this.operators = new OperatorsView(deps, options.contention, async (resource) => {
      return this.#jobRecords[0]?.overlapOf(resource);
    });
    this.watches = new LockWatches(deps);
    store.listen({
      granted: (grant) => localQueues.granted(grant),
      retained: (notice) => localQueues.retained(notice),
      called: (call) => this.#fleet.called(call),
      asked: (request) => this.#jobRecords.forEach(({ requests }) => requests.asked(request)),
      freed: (message) => this.watches.freed(message),
      deliveryUncertain: () => localQueues.deliveryUncertain(),
      reconnected: () => [orphanReleases, localQueues, this.watches].forEach((each) => each.reconnected()),
    });
    this.deps = deps;
    this.leases = leases;
    this.#campaigns = new Campaigns({ ...runtime, context, acquire });
    const leaderships = () => this.#campaigns.list().map((each) => ({ name: each.name, isLeader: each.isLeader() }));
    this.#health = new HealthChecks({ ...deps, leaderships });
    this.#fleet = new FleetView({
      ...deps,
      leaderships,
      jobs: () => this.#missedTicks.flatMap(({ names }) => names),
      onBlocked: (listener) => this.operators.onBlocked(listener, true),
      inspect: (resource) => this.operators.inspect(resource),
      list: (listed) => this.operators.list(listed),
    });
    this.#plainOptions = resolveLockOptions(undefined, defaults);
    this.#tryDefaults = { ...defaults, waitMs: 0 };
    this.#telemetries = new Telemetries(
      observers,
      observation,
      { stats: () => this.stats(), onBlocked: (listener) => this.operators.onBlocked(listener) },
      warn,
    );
    this.#telemetries.start(options.telemetry ?? []);
    this.#warn = warn;
    this.#checkName = options.suspiciousNames === 'allow' ? checkOwnResource : checkClearResource;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
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

  singletonRuns(jobs: JobStore): SingletonRuns {
    return new SingletonRuns(this.deps, this.leases, jobs);
  }

  /** @param jobs remembers them */
  jobRecords(jobs: JobStore): JobRecords {
    const records = new JobRecords(this.deps, jobs);
    this.#jobRecords.push(records);
    return records;
  }

  /** @param jobs remembers them */
  missedTicks(jobs: JobStore): MissedTicks {
    const missedTicks = new MissedTicks(this.deps, jobs, this.#warn);
    this.#missedTicks.push(missedTicks);
    return missedTicks;
  }

  /** Counts the calls that wait for a resource, without the candidates of leaderships. Visits every resource in use. */
  countWaiting(): number {
    return this.deps.localQueues.countWaiting();
  }

  /** Returns the locks that this process holds, waits for and still has to release at this moment. */
  stats(): LockStats {
    const { localQueues, watchdog, orphanReleases, alarms } = this.deps;
    return {
      resources: localQueues.size,
      leases: watchdog.size,
      orphanReleases: orphanReleases.size,
      lateGrants: orphanReleases.late.size,
      alarms: alarms.size,
    };
  }

  /** Begins a call for a lease that the user has to release. @param below the function that the user has called */
  withOrigin<T>(below: (...args: never[]) => unknown, begin: (origin: Origin) => T): T {
    return this.deps.leaks.withOrigin(below, begin);
  }

  acquire(resource: ResourceNames, options?: LockOptions, origin?: Origin): Promise<SingleLease | CompositeLease> {
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
    if (isFixed(options)) this.#fixedOptions.set(options, resolved);
    return resolved;
  }

  async tryAcquire(
    resource: ResourceNames,
    options?: LockOptions,
    origin?: Origin,
  ): Promise<SingleLease | CompositeLease | null> {
    const names = this.#namesOf(resource, 'tryAcquire', options);
    try {
      return await this.leases.acquire(names, resolveLockOptions(options, this.#tryDefaults), origin);
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
    if (transaction) {
      const ran = await this.#usingIn(transaction, 'tryUsing', resource, options, work);
      return ran ? { ran: true, value: ran.value } : { ran: false };
    }
    const lease = await this.tryAcquire(resource, options);
    return lease ? { ran: true, value: await this.leases.runUnder(lease, work, options?.onLost) } : { ran: false };
  }

  using<T>(resource: ResourceNames, options: LockOptions | undefined, work: LockedWork<T>): Promise<T> {
    // Not async, as `acquire`.
    try {
      checkWork(work);
      const transaction = this.leases.transactions?.current();
      // It is never refused without an error.
      if (transaction) return this.#usingIn(transaction, 'using', resource, options, work).then((ran) => ran!.value);
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
  ): Promise<{ value: T } | undefined> {
    const mayBeRefused = call === 'tryUsing';
    const names = this.#namesOf(resource, call, options);
    const defaults = mayBeRefused ? this.#tryDefaults : this.deps.defaults;
    return transaction.using(names, resolveLockOptions(options ?? undefined, defaults), mayBeRefused, work);
  }

  campaign(name: string, options?: CampaignOptions): Leadership {
    return this.#campaigns.campaign(name, options);
  }

  leadership(name: string): Leadership | undefined {
    return this.#campaigns.get(name);
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
    return this.#health.check(options);
  }

  /** Returns the client ids of all that have an inbox, as far as Redis shows it. @throws LockUnavailableError */
  connected(): Promise<readonly string[] | undefined> {
    return this.#fleet.connected();
  }

  fleet(options?: FleetOptions): Promise<LockFleet> {
    return this.#fleet.fleet(options);
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
    this.#closing.abort();
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
    this.#drained.abort();
    for (const hold of active.list()) hold.lose('shutdown');
    await active.whenEmpty(clock, SHUTDOWN_GRACE_MS);
    await orphanReleases.settle(defaults.attemptTimeoutMs);
    watchdog.stop();
    leaks.stop();
    alarms.stop();
    this.#fleet.stop();
    await store.close();
    this.#telemetries.stop();
  }
}
