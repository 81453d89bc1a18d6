import { LockBusyError, LockTimeoutError } from '../core/errors.js';
import type { Lease } from '../core/lease.js';
import type { LockOptions } from '../core/lock-options.js';
import type { LockDecoration } from './lock-decorator-options.js';
import type { RedisLockService } from './redis-lock.service.js';

/**
 * Does the work under the lock that a decoration asks for. What the work returns or throws passes through untouched, also
 * when it throws a busy error of its own.
 */
export async function runLocked<T>(
  service: RedisLockService,
  decoration: Pick<LockDecoration<never>, 'onBusy' | 'onLost'>,
  resources: readonly string[],
  lockOptions: LockOptions | undefined,
  work: (lease: Lease) => T | Promise<T>,
): Promise<T> {
  let began = false;
  try {
    return await service.using(resources.length === 1 ? resources[0]! : resources, lockOptions, async (lease) => {
      began = true;
      const result = await work(lease);
      if (decoration.onLost === 'throw') lease.assertHeld();
      return result;
    });
  } catch (error) {
    if (began || decoration.onBusy === 'throw') throw error;
    if (!(error instanceof LockBusyError || error instanceof LockTimeoutError)) throw error;
    return (decoration.onBusy === 'skip' ? undefined : await decoration.onBusy(error)) as T;
  }
}
