import { InvalidLockOptionsError } from './errors.js';
import type { ForeignLock } from './foreign-lock.js';
import type { LockMode } from './lock-mode.js';
import { describeValue } from './validation.js';

/** @throws InvalidLockOptionsError if the value of `alsoLock` is no lock of another library */
export function checkForeignLock(option: string, value: unknown): void {
  const { library, keyOf, open } = (value ?? {}) as Partial<ForeignLock>;
  if (typeof library === 'string' && typeof keyOf === 'function' && typeof open === 'function') return;
  throw new InvalidLockOptionsError(
    `${option} must be a lock of nestjs-redis-lock/migration, such as redlock({ client }), not ${describeValue(value)}.`,
    option,
  );
}

/** @throws InvalidLockOptionsError if the other library has no lock of this mode */
export function checkAlsoLock({ alsoLock, mode }: { alsoLock?: ForeignLock; mode?: LockMode }): void {
  if (alsoLock === undefined || mode === undefined || isForeignMode(mode)) return;
  throw new InvalidLockOptionsError(
    `alsoLock is for the modes exclusive and reentrant, not '${mode}': the lock of ${alsoLock.library} has one holder. ` +
      'Leave alsoLock out, or take the lock exclusively until all old processes are gone.',
    'alsoLock',
  );
}

/** Whether the locks of other libraries are like it: with one holder. */
export function isForeignMode(mode: LockMode): boolean {
  return mode === 'exclusive' || mode === 'reentrant';
}
