import { InvalidLockOptionsError } from '../api/errors.js';
import type { ForeignLock } from '../api/foreign-lock.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { ActiveHolds, LockContext } from '../holding/lock-context.js';
import type { Grant, Hold, SecondLease } from '../holding/hold.js';
import type { LocalQueues } from '../acquiring/local-queues.js';
import type { Leaks } from './leaks.js';
import type { Watchdog } from '../holding/watchdog.js';
import type { Runtime } from '../holding/runtime.js';
import type { AsyncContext } from '../util/async-contexts.js';
import type { LeaseTransfer } from './transfer-text.js';

/** What leases need; one for all leases of a client. */
export interface LeaseDeps extends Runtime {
  readonly localQueues: LocalQueues;
  readonly watchdog: Watchdog;
  readonly active: ActiveHolds;
  readonly context: LockContext;
  readonly leaks: Leaks;
  readonly secondLocks: SecondLocks;
}

/** The port to what takes locks of other libraries together with ours, for the option `alsoLock`. One for a client. */
export interface SecondLocks {
  /** What a call for a resource takes beside our lock. @throws what the code of the user throws */
  of(lock: ForeignLock, resource: string): SecondLock | undefined;
  /** @throws InvalidLockOptionsError if a call for several resources would wait for the second lock of one of them */
  checkNames(names: readonly string[], lock: ForeignLock): void;
  /** @throws InvalidLockOptionsError if a lease that is adopted would be held without its second lock */
  checkMayAdopt(part: LeaseTransfer, lock: ForeignLock): void;
  close(): Promise<void>;
}

export interface SecondLock {
  /** @throws InvalidLockOptionsError if a lease that is used again was acquired without it */
  checkIsHeldBy(hold: Hold): void;
  /** @throws LockReentryError if the call would wait for what its own async context or transaction holds */
  checkIsNotOwn(context: LockContext, transaction?: Pick<LockContext, 'find'>): void;
  /**
   * Waits until it is held too, within the `waitMs` of the call. Until then our lock is renewed, whatever the options
   * say of the lease. Both or none are held in the end.
   */
  acquire<L>(call: SecondLockCall<L>, deps: LeaseDeps): Promise<L>;
}

/** A call that was granted our lock, and wants the second one. */
export interface SecondLockCall<L> {
  readonly grant: Grant;
  readonly options: ResolvedLockOptions;
  readonly take: (grant: Grant, second: SecondLease) => L;
  readonly caller?: AsyncContext | undefined;
  /** When its `waitMs` began. @default what the grant says */
  readonly startedAt?: number;
  /** Called when the second lock is not had, before ours is released. */
  readonly failed?: (error: unknown, waiting: Hold) => Promise<void>;
  /** The run of a singleton job that wants it. `rerun`: the tick was granted to another run before. */
  readonly run?: { readonly fencingToken: number; readonly rerun: boolean };
}

function refuse(): never {
  throw new InvalidLockOptionsError('This lock client takes no locks of other libraries.', 'alsoLock');
}

/** Of a client that knows no other library. */
export const NO_SECOND_LOCKS: SecondLocks = {
  of: refuse,
  checkNames: refuse,
  checkMayAdopt: refuse,
  close: async () => {},
};
