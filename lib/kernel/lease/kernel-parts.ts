import type { ActiveHolds, LockContext } from '../holding/lock-context.js';
import type { LocalQueues } from '../acquiring/local-queues.js';
import type { Leaks } from './leaks.js';
import type { Watchdog } from '../holding/watchdog.js';
import type { Runtime } from '../holding/runtime.js';

/** The parts of a lock client that its leases and the features need. */
export interface KernelParts extends Runtime {
  readonly localQueues: LocalQueues;
  readonly watchdog: Watchdog;
  readonly active: ActiveHolds;
  readonly context: LockContext;
  readonly leaks: Leaks;
}
