import { InvalidLockOptionsError } from '../api/errors.js';
import { LOCK_OPTION_NAMES, type LockOptions } from '../api/lock-options.js';
import { checkInteger, checkKnownOptions } from '../api/validation.js';

/** The most permits a semaphore may have. */
export const MAX_PERMITS = 1_000_000;

/** What a semaphore is. */
export interface SemaphoreOptions {
  /** How many permits the whole fleet has. Every caller must state the same number. @allowed 1 to 1000000 */
  permits: number;
}

/** What one call to a semaphore may choose. Whatever is left out is the module's default. */
export interface PermitOptions extends Omit<LockOptions, 'mode'> {
  /**
   * How many permits the call takes, all or none; no more than there are.
   *
   * @allowed 1 to 1000000
   * @default 1
   */
  count?: number;
}

export const PERMIT_OPTION_NAMES = [...LOCK_OPTION_NAMES.filter((name) => name !== 'mode'), 'count'];

/** @throws InvalidLockOptionsError */
export function checkPermits(permits: unknown, source: string): number {
  if (permits === undefined) {
    throw new InvalidLockOptionsError(`permits is missing: say how many permits ${source} has in all.`, 'permits');
  }
  checkInteger('permits', permits, 1, MAX_PERMITS, 'permits');
  return permits as number;
}

/** @throws InvalidLockOptionsError */
export function checkSemaphoreOptions(options: SemaphoreOptions | undefined, source: string): number {
  checkKnownOptions(source, options ?? {}, ['permits']);
  return checkPermits(options?.permits, source);
}

/** Takes the count out of the options of a call. @throws InvalidLockOptionsError */
export function readCount(options: PermitOptions | undefined, total: number): { count: number; lock: LockOptions } {
  checkKnownOptions('permit options', options ?? {}, PERMIT_OPTION_NAMES);
  // The usual case: a copy costs more than all the checks.
  if (!options || !('count' in options)) return { count: 1, lock: options ?? {} };
  const { count = 1, ...lock } = options;
  checkInteger('count', count, 1, MAX_PERMITS, 'permits');
  if (count > total) {
    throw new InvalidLockOptionsError(
      `count is ${count}, but there are ${total} permits: it could never be granted.`,
      'count',
    );
  }
  return { count, lock };
}
