import type { LockObservers } from '../events/observers.js';
import type { ResolvedDefaults } from '../api/lock-options.js';
import type { DeadlockWatch } from '../deadlocks/deadlock-watch.js';
import type { Observation } from '../tracing/observation.js';
import type { Alarms } from '../util/alarms.js';
import type { Clock, Random } from '../util/clock.js';
import type { Hold } from './hold.js';
import type { LockOrder } from './lock-order.js';
import type { LockStore } from '../store/lock-store.js';
import type { OrphanReleases } from '../store/orphan-releases.js';
import type { PlaceKeeper } from '../places/place-keeper.js';

/** What every feature of a lock client needs. All features share one. */
export interface Runtime {
  readonly store: LockStore;
  readonly clock: Clock;
  readonly random: Random;
  /** The time limits of commands and waits. */
  readonly alarms: Alarms;
  readonly observers: LockObservers;
  readonly observation: Observation;
  /** Releases of acquisitions that were given up and may have succeeded unnoticed. */
  readonly orphanReleases: OrphanReleases;
  /** The places of this process in the queues of the store. */
  readonly places: PlaceKeeper;
  /** Aborts when the shutdown begins. */
  readonly closing: AbortSignal;
  /** Aborts when the work that was under way at that time has ended, or `drainMs` is over. */
  readonly drained: AbortSignal;
  /**
   * What ends a call that begins now. Inside of work under a lease that is `drained`: such work cannot end well where it
   * is refused a lock that it needs. Otherwise it is `closing`.
   */
  shutdownSignal(): AbortSignal;
  /** What the work holds that the running code is part of. */
  currentHolds(): readonly Hold[];
  /** Asks the other processes whether they wait for each other; not set where they cannot be asked. */
  readonly deadlocks?: DeadlockWatch | undefined;
  /** The orders in which calls of this process take locks inside each other. */
  readonly lockOrder: LockOrder;
  readonly defaults: ResolvedDefaults;
}
