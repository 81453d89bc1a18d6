import type { ActiveHolds } from './active-holds.js';
import type { Alarms } from './alarms.js';
import type { Clock } from './clock.js';
import type { Contention } from './contention.js';
import type { LockObservers } from './events.js';
import type { Leaks } from './leaks.js';
import type { LockContext } from './lock-context.js';
import type { LeaseLimit } from './lock-options.js';
import type { LockStore } from './lock-store.js';
import type { Watchdog } from './watchdog.js';
import type { Withdrawals } from './withdrawals.js';

/** What a lease works with; one for all leases of a client. */
export interface LeaseWorkings {
  readonly store: LockStore;
  readonly contention: Contention;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly observers: LockObservers;
  readonly watchdog: Watchdog;
  readonly withdrawals: Withdrawals;
  readonly active: ActiveHolds;
  readonly context: LockContext;
  readonly leaks: Leaks;
  readonly limit: LeaseLimit;
  /** A new owner id of this process. */
  newOwner(): string;
}
