import { isAbortedBy } from '../../core/util/signals.js';
import { LockBusyError } from '../../core/api/errors.js';
import { LeaseLostError } from '../../core/api/lease-errors.js';
import { showCaller } from '../../core/acquiring/failed-calls.js';
import type { Lease, LockedWork } from '../../core/api/lease.js';
import type { LockPlan } from './lock-plan.js';
import type { RedisLockService } from '../redis-lock.service.js';

/**
 * Does the work under the lock of a plan. The result or error of the work passes through untouched, even a busy error
 * of its own.
 *
 * @param self `this` of the function `onBusy`
 * @param args what it is called with after the error
 * @param signal ends the wait for the lock
 */
export async function runLocked<T>(
  service: RedisLockService,
  plan: Pick<LockPlan<never>, 'onBusy' | 'onLost' | 'using'>,
  resources: readonly string[],
  work: LockedWork<T>,
  self: unknown,
  args: readonly unknown[],
  signal?: AbortSignal,
): Promise<T> {
  let held: Lease | undefined;
  const underLease = (lease: Lease): Promise<T> => {
    held = lease;
    return runUnlessLost(lease, plan.onLost, work);
  };
  try {
    return await plan.using(service, resources, underLease, signal);
  } catch (error) {
    // A renewal or a timer has made the loss.
    if (held && error instanceof LeaseLostError && error === held.signal.reason) showCaller(error);
    if (held || plan.onBusy === 'throw') throw error;
    if (!(error instanceof LockBusyError)) throw error;
    if (plan.onBusy === 'skip') return undefined as T;
    const onBusy = plan.onBusy as (this: unknown, busy: LockBusyError, ...args: readonly unknown[]) => T | Promise<T>;
    return await onBusy.call(self, error, ...args);
  }
}

/** @throws LeaseLostError unless the work has transferred the lease, which is no loss */
function checkHeld(lease: Lease): void {
  try {
    lease.assertHeld();
  } catch (error) {
    if (!(error instanceof LeaseLostError && error.reason === 'transferred')) throw error;
  }
}

/**
 * Does the work. With `onLost: 'throw'`, it rejects with the loss of the lease, also where the work failed because the
 * signal of the lease aborted.
 */
export async function runUnlessLost<L extends Lease, T>(
  lease: L,
  onLost: LockPlan<never>['onLost'],
  work: (lease: L) => T | Promise<T>,
): Promise<T> {
  if (onLost === 'abort') return work(lease);
  try {
    const result = await work(lease);
    checkHeld(lease);
    return result;
  } catch (error) {
    throw isAbortedBy(lease.signal, error) ? lease.signal.reason : error;
  }
}
