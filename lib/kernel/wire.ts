import { setMaxListeners } from 'node:events';
import { Campaigns } from '../features/leader/core/campaigns.js';
import { ClientJobs } from '../features/jobs/core/client-jobs.js';
import type { ContentionSettings } from '../features/fleet/core/contention/contention.js';
import { FleetView } from '../features/fleet/core/roll/fleet-view.js';
import { HealthChecks } from '../features/fleet/core/health/health-checks.js';
import { LockWatches } from '../features/watch/core/lock-watches.js';
import { OperatorsView } from '../features/fleet/core/operators.js';
import type { LocalQueues } from './acquiring/local-queues.js';
import { type LockDefaults, type ResolvedLockOptions, resolveLockDefaults } from './api/lock-options.js';
import type { TransactionHooks } from './api/transactions.js';
import { DeadlockWatch } from './deadlocks/deadlock-watch.js';
import { type GroupFunction, Groups, type LockObserver, LockObservers } from './events/observers.js';
import { type LockStats, type LockTelemetry, Telemetries } from './events/telemetry.js';
import { ActiveHolds, LockContext } from './holding/lock-context.js';
import { LockOrder } from './holding/lock-order.js';
import type { Runtime } from './holding/runtime.js';
import { Watchdog } from './holding/watchdog.js';
import { Leaks, type OnLeak } from './lease/leaks.js';
import type { KernelParts } from './lease/kernel-parts.js';
import { LeaseFactory } from './lease/lease-factory.js';
import type { SingleLease } from './lease/single-lease.js';
import { TransactionLeases } from './lease/transaction-leases.js';
import { PlaceKeeper } from './places/place-keeper.js';
import type { LockStore } from './store/lock-store.js';
import { OrphanReleases } from './store/orphan-releases.js';
import { Observation } from './tracing/observation.js';
import { Alarms } from './util/alarms.js';
import { type Clock, type Random, SYSTEM_CLOCK, SystemRandom } from './util/clock.js';

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

/** The steps of a call that the testing kit replaces. */
interface Replaceable {
  createQueues(runtime: Runtime): LocalQueues;
  /** Acquires a leadership. */
  lead(resource: string, options: ResolvedLockOptions): SingleLease | Promise<SingleLease>;
}

/** All parts of a lock client. */
export interface LockParts {
  readonly deps: KernelParts;
  readonly leases: LeaseFactory;
  readonly telemetries: Telemetries;
  readonly stats: () => LockStats;
  readonly close: AbortController;
  readonly drain: AbortController;
  readonly operators: OperatorsView;
  readonly watches: LockWatches;
  readonly campaigns: Campaigns;
  readonly jobs: ClientJobs;
  readonly health: HealthChecks;
  readonly fleet: FleetView;
}

/** Creates the parts of a lock client, and connects them: what is below, then each feature. */
export function wire(options: LockClientOptions, replaceable: Replaceable): LockParts {
  const { store, service, clock = SYSTEM_CLOCK, random = new SystemRandom(), warn = () => {} } = options;
  const observers = new LockObservers(options.observers, service, new Groups(options.group, warn));
  const defaults = { ...options.defaults, ...resolveLockDefaults(options.defaults ?? {}) };
  const alarms = new Alarms(clock);
  const orphanReleases = new OrphanReleases(store, clock, alarms);
  const close = new AbortController();
  const drain = new AbortController();
  const closing = close.signal;
  const drained = drain.signal;
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
    shutdownSignal: context.shutdownSignal.bind(context, closing, drained),
    currentHolds: context.held.bind(context),
    deadlocks: store.rollCalls && new DeadlockWatch({ clock, alarms }, () => fleet.nestedWaits()),
    lockOrder: new LockOrder(observers, clock, warn),
    defaults,
  };
  const watchdog = new Watchdog(store, clock, observers, observation);
  const active = new ActiveHolds();
  const localQueues = replaceable.createQueues(runtime);
  const leaks = new Leaks(active, observers, clock, watchdog, options.onLeak ?? 'warn', observation);
  const deps: KernelParts = { ...runtime, localQueues, watchdog, active, context, leaks };
  const leases = new LeaseFactory(deps);
  leases.labelsGroups = options.labelGroups ?? false;
  if (options.transactions) leases.transactions = new TransactionLeases(options.transactions, deps, leases);

  const jobs = new ClientJobs(deps, leases, warn);
  const operators = new OperatorsView(deps, options.contention, (resource) => jobs.overlapOf(resource));
  const watches = new LockWatches(deps);
  const campaigns = new Campaigns({ ...runtime, context, acquire: (name, lock) => replaceable.lead(name, lock) });
  const leaderships = () => campaigns.list().map((each) => ({ name: each.name, isLeader: each.isLeader() }));
  const health = new HealthChecks({ ...deps, leaderships });
  const fleet = new FleetView({
    ...deps,
    leaderships: () =>
      campaigns.list().map((each) => {
        return { name: each.name, isLeader: each.isLeader(), elections: each.elections.count() };
      }),
    jobs: () => jobs.names(),
    onBlocked: (listener) => operators.onBlocked(listener, true),
    inspect: (resource) => operators.inspect(resource),
    scan: (scanned) => operators.scan(scanned),
  });
  store.listen({
    granted: (grant) => localQueues.granted(grant),
    retained: (notice) => localQueues.retained(notice),
    called: (call) => fleet.called(call),
    unasked: (isUnasked) => fleet.unasked(isUnasked),
    asked: (request) => jobs.asked(request),
    freed: (message) => watches.freed(message),
    deliveryUncertain: () => localQueues.deliveryUncertain(),
    reconnected: () => [orphanReleases, localQueues, watches].forEach((each) => each.reconnected()),
  });

  const stats = (): LockStats => ({
    resources: localQueues.size,
    leases: watchdog.size,
    orphanReleases: orphanReleases.size,
    lateGrants: orphanReleases.late.size,
    alarms: alarms.size,
  });
  const onBlocked: OperatorsView['onBlocked'] = (listener) => operators.onBlocked(listener);
  const telemetries = new Telemetries(observers, observation, { stats, onBlocked }, warn);
  telemetries.start(options.telemetry ?? []);
  return { deps, leases, telemetries, stats, close, drain, operators, watches, campaigns, jobs, health, fleet };
}
