import type { LockWaiter } from '../../../lib/kernel/store/lock-state.js';

/** The instances that wait, once for each of their places in the queue, the first one first. */
export function instancesOf(waiters: readonly LockWaiter[]): string[] {
  return waiters.map(({ instanceId }) => instanceId);
}
