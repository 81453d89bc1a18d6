import { LockBusyError, LockQueueFullError, LockTimeoutError } from '../core/errors.js';
import type { Lease } from '../core/lease.js';
import type { LockOptions } from '../core/lock-options.js';
import type { BusyError, LockDecoration } from './lock-decorator-options.js';
import type { RedisLockService } from './redis-lock.service.js';

/**
 * Does the work under the lock that a decoration asks for. What the work returns or throws passes through untouched, also
 * when it throws a busy error of its own. With `onLost: 'throw'` an abort by the lease's signal becomes the loss itself.
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
      try {
        const result = await work(lease);
        if (decoration.onLost === 'throw') lease.assertHeld();
        return result;
      } catch (error) {
        throw decoration.onLost === 'throw' && isAbortBy(lease.signal, error) ? lease.signal.reason : error;
      }
    });
  } catch (error) {
    if (began || decoration.onBusy === 'throw') throw error;
    if (!isBusy(error)) throw error;
    return (decoration.onBusy === 'skip' ? undefined : await decoration.onBusy(error)) as T;
  }
}

function isBusy(error: unknown): error is BusyError {
  return [LockBusyError, LockTimeoutError, LockQueueFullError].some((kind) => error instanceof kind);
}

/** Whether an API of Node's says that it was aborted by this signal: it wraps the reason in an AbortError of its own. */
function isAbortBy(signal: AbortSignal, error: unknown): boolean {
  return signal.aborted && error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason;
}
