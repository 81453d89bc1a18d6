import type { ActiveHolds, LockContext } from '../holding/lock-context.js';
import type { LocalQueues } from '../acquiring/local-queues.js';
import type { Leaks } from './leaks.js';
import type { Watchdog } from '../holding/watchdog.js';
import type { Runtime } from '../holding/runtime.js';

export interface LeaseDeps extends Runtime {
  readonly localQueues: LocalQueues;
  readonly watchdog: Watchdog;
  readonly active: ActiveHolds;
  readonly context: LockContext;
  readonly leaks: Leaks;
}
