import type { ActiveHolds } from '../holding/active-holds.js';
import type { Alarms } from '../util/alarms.js';
import type { Clock } from '../util/clock.js';
import type { LocalQueues } from '../acquiring/local-queues.js';
import type { LockObservers } from '../api/events.js';
import type { Leaks } from './leaks.js';
import type { LockContext } from '../holding/lock-context.js';
import type { LeaseLimit } from '../api/lock-options.js';
import type { LockStore } from '../store/lock-store.js';
import type { Watchdog } from '../holding/watchdog.js';
import type { OrphanReleases } from '../store/orphan-releases.js';

/** What leases need; one for all leases of a client. */
export interface LeaseDeps {
  readonly store: LockStore;
  readonly localQueues: LocalQueues;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly observers: LockObservers;
  readonly watchdog: Watchdog;
  readonly orphanReleases: OrphanReleases;
  readonly active: ActiveHolds;
  readonly context: LockContext;
  readonly leaks: Leaks;
  readonly limit: LeaseLimit;
  /** A new owner id of this process. */
  newOwnerId(): string;
}
