import { InvalidLockOptionsError } from './errors.js';
import type { Lease } from './lease.js';
import { describeValue } from './validation.js';

/** Work done under a lease. */
export type LockedWork<T> = (lease: Lease) => T | Promise<T>;

/** @throws InvalidLockOptionsError for anything but a function */
export function checkWork<W extends (...args: never[]) => unknown>(work: W | undefined, source = 'using'): W {
  if (typeof work === 'function') return work;
  throw new InvalidLockOptionsError(
    `${source} needs a function to run under the lock, not ${describeValue(work)}.`,
    'work',
  );
}
