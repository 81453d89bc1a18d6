import { LockError, quoteResource } from './errors.js';

/**
 * This async context already holds the resource and would wait for itself: it locks an exclusive lock again, a reader
 * wants to write, or too few permits are left. Or the call would transfer or downgrade a lease that outer entries
 * still use.
 *
 * @remedy Use `mode: 'reentrant'` at both places, or lock once. A reader that will write takes `mode: 'write'` from
 * the start.
 */
export class LockReentryError extends LockError {
  override readonly code = 'LOCK_REENTRY';

  static waitingForItself(resource: string, held: string, wanted: string): LockReentryError {
    return new LockReentryError(
      `This async context already holds ${quoteResource(resource)} (mode ${held}) and would wait for itself for ever ` +
        `(mode ${wanted}). Use mode: 'reentrant' for both, or do not lock it again further down.`,
      resource,
    );
  }

  static upgrade(resource: string): LockReentryError {
    return new LockReentryError(
      `This async context holds ${quoteResource(resource)} to read, and cannot become the writer while it reads: two readers ` +
        `that tried would wait for each other for ever. Take mode: 'write' from the start and downgrade() it when you only ` +
        `read on, or release the read lock first and look again at what you read.`,
      resource,
    );
  }

  static waitingForOwnPermits(resource: string, held: number, wanted: number, total: number): LockReentryError {
    return new LockReentryError(
      `This async context holds ${held} of the ${total} permits of ${quoteResource(resource)} and wants ${wanted} more: it ` +
        `would wait for itself for ever. Take all it needs at once, or do not take any further down. If there are more by now, ` +
        `resize() this semaphore object too.`,
      resource,
    );
  }

  static sharedByOthers(resource: string, what: string): LockReentryError {
    return new LockReentryError(
      `The lease of ${quoteResource(resource)} was not ${what}: this async context has entered it more than once, and what ` +
        `stands on the others would be gone under them. Do it where only one is left.`,
      resource,
    );
  }

  static foreignRelease(resource: string): LockReentryError {
    return new LockReentryError(
      `${quoteResource(resource)} is held in reentrant mode by another async context; only that context may release it. ` +
        `Nothing was released.`,
      resource,
    );
  }
}
