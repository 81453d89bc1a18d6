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
  readonly places: PlaceKeeper;
  readonly closing: AbortSignal;
  /** Aborts when the work that was under way at that time has ended, or `drainMs` has passed. */
  readonly drained: AbortSignal;
  /**
   * Returns the signal that ends a call that begins now: `drained` inside of work under a lease, because such work
   * cannot finish if it is refused a lock that it needs; otherwise `closing`.
   */
  shutdownSignal(): AbortSignal;
  currentHolds(): readonly Hold[];
  /** Asks the other processes whether they wait for each other; not set if they cannot be asked. */
  readonly deadlocks?: DeadlockWatch | undefined;
  /** The orders in which calls of this process take locks inside each other. */
  readonly lockOrder: LockOrder;
  readonly defaults: ResolvedDefaults;
}
