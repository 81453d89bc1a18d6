/**
 * Experimental: the ports of a store of your own, for the module option `store`. A new verb of the lock module may change
 * them in a minor version.
 *
 * @experimental
 * @module nestjs-redis-lock/store
 */

export type { LockStores, StoreContext, StoreFactory } from './core/store/lock-stores.js';
export { LockStoreError } from './core/store/store-error.js';
export type { Clock, Random } from './core/util/clock.js';

// Locks
export type {
  AcquireReply,
  KeepReply,
  KeptPlace,
  LockOwner,
  LockStore,
  Queueing,
  Retention,
  RotateReply,
  SeveralReply,
  Transfer,
} from './core/store/lock-store.js';
export type { Holders } from './core/api/holder.js';
export type { PushedGrant, StoreListener } from './core/store/hearing.js';
export type { FreedMessage, Watcher, WatchReply } from './core/store/watch-store.js';
export type { ServerHealth, StoreProbe } from './core/store/store-probe.js';

// Jobs: the claims of their ticks, and what is remembered of them
export type { ClaimEnd, Tick, TickClaim, TickReply, JobNote } from './core/store/job-claims.js';
export type {
  JobClaims,
  JobPause,
  JobRegistration,
  JobState,
  JobStore,
  MissedNote,
  MissedReply,
  RunEnd,
} from './core/store/job-store.js';
