import { abortSignal, type OptionsOf, OptionTable, patience } from '../api/option-table.js';
import { InvalidLockOptionsError } from '../api/errors.js';
import { checkResource } from '../api/resource.js';

/** How `locks.waitUntilFree()` waits. */
export interface WaitUntilFreeOptions {
  /**
   * How long to wait. With 0, the call only looks. With `Infinity`, it never gives up.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default that of the module
   */
  waitMs?: number;
  /** Ends the wait with `LockAbortedError` when it aborts. @default none */
  signal?: AbortSignal;
}

export const WAIT_UNTIL_FREE_OPTIONS = new OptionTable({
  waitMs: patience(),
  signal: abortSignal(),
} satisfies OptionsOf<WaitUntilFreeOptions>);

/**
 * Checks what a caller waits for. A resource of a job or of a leadership may be waited for: nothing is taken.
 *
 * @throws InvalidLockOptionsError
 */
export function checkWatched(resource: unknown): string {
  if (!Array.isArray(resource)) return checkResource(resource, 'waitUntilFree');
  throw new InvalidLockOptionsError(
    'waitUntilFree() takes one resource, not an array: several resources are free at different moments. To see ' +
      'each of them free once, pass one call for each to Promise.all(). To have all of them at once, acquire them.',
    'resource',
  );
}

/** @throws InvalidLockOptionsError */
export function checkWaitUntilFree(options: WaitUntilFreeOptions = {}): WaitUntilFreeOptions {
  WAIT_UNTIL_FREE_OPTIONS.check('waitUntilFree', options);
  return options;
}
