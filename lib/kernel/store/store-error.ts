import { describeThrown, escapeText } from '../util/quoted.js';

/**
 * The progress of a failed command. `notExecuted`: it had no effect, try again. `unknown`: it may have been executed,
 * or may still be. `refused`: the store will never execute it; report it to the user.
 */
export type StoreFailure = 'notExecuted' | 'unknown' | 'refused';

/** The rejection of a {@link LockStore}. The message is safe to show: no arguments, no credentials. */
export class LockStoreError extends Error {
  override readonly name = 'LockStoreError';

  constructor(
    readonly failure: StoreFailure,
    message: string,
  ) {
    // The text may come from Redis, another library or a proxy.
    super(escapeText(message));
  }
}

/** The error of every call after the store was closed. Trying again does not help. */
export class ClosedStoreError extends LockStoreError {}

export function closedStore(): ClosedStoreError {
  return new ClosedStoreError('refused', 'this lock service is closed, because its application has shut down');
}

/** Returns any rejection of a store as a {@link LockStoreError}. One of another class counts as `unknown`. */
export function asStoreError(error: unknown): LockStoreError {
  if (error instanceof LockStoreError) return error;
  return new LockStoreError('unknown', describeThrown(error));
}
