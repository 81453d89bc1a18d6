import type { Clock, Random } from './util/clock.js';
import type { JobStore } from '../features/jobs/core/job-store.js';
import type { ResultStore } from '../features/once/core/result-store.js';
import type { LockStore } from './store/lock-store.js';

export interface LockStores {
  /** The store. The lock service closes it at shutdown. */
  readonly locks: LockStore;
  readonly jobs: JobStore;
  /** Not set if the store can't store results of `once`. */
  readonly results?: ResultStore | undefined;
  /** The time by which this process counts leases, waits and renewals. @default the system's */
  readonly clock?: Clock | undefined;
  /** @default the system's */
  readonly random?: Random | undefined;
  /**
   * Called when the application has started: from then on, the connections keep the process alive. Not before, because
   * Nest does not report a start that fails, and such a process must be able to exit.
   */
  readonly keepAlive?: (() => void) | undefined;
}
