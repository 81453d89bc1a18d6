import { InvalidLockOptionsError } from '../api/errors.js';
import { LOCK_OPTIONS, type LockOptions } from '../api/lock-options.js';
import { Option, type OptionsOf, OptionTable, without } from '../api/validation.js';

/** The most permits a semaphore may have. */
const MAX_PERMITS = 1_000_000;

/** Options of `locks.semaphore()`. */
export interface SemaphoreOptions {
  /**
   * The number of permits across all instances. Every caller must pass the same number.
   *
   * @allowed 1 to 1000000
   */
  permits: number;
}

/** Options of one call to a semaphore. An omitted option takes the module's default. */
export interface PermitOptions extends Omit<LockOptions, 'mode' | 'onBusy' | 'cancellable'> {
  /**
   * The number of permits that the call acquires, all or none; at most `permits`.
   *
   * @allowed 1 to 1000000
   * @default 1
   */
  count?: number;
}

const permits = Option.integer(1, MAX_PERMITS, 'permits');

export const SEMAPHORE_OPTIONS = new OptionTable({ permits } satisfies OptionsOf<SemaphoreOptions>);

export const PERMIT_OPTIONS = new OptionTable({
  ...without(LOCK_OPTIONS.options, 'mode', 'onBusy', 'cancellable'),
  count: permits.default(1),
} satisfies OptionsOf<PermitOptions>);

export function checkPermits(given: unknown, source: string): number {
  if (given === undefined) {
    throw new InvalidLockOptionsError(`permits is missing: pass the total number of permits of ${source}.`, 'permits');
  }
  permits.check('permits', given);
  return given as number;
}

export function checkSemaphoreOptions(options: SemaphoreOptions | undefined, source: string): number {
  if (options !== undefined) SEMAPHORE_OPTIONS.check(source, options);
  return checkPermits(options?.permits, source);
}

/** Checks the options of a call, and returns how many permits it takes. */
export function checkPermitOptions(options: PermitOptions | undefined, total: number): number {
  if (options !== undefined) PERMIT_OPTIONS.check('permit options', options);
  return readCount(options, total);
}

/**
 * Returns the number of permits of a call with these checked options. @throws InvalidLockOptionsError when there are
 * fewer
 */
export function readCount(options: PermitOptions | undefined, total: number): number {
  const count = options?.count ?? PERMIT_OPTIONS.defaults.count;
  if (count <= total) return count;
  throw new InvalidLockOptionsError(
    `count is ${count}, but there are ${total} permits: it could never be granted.`,
    'count',
  );
}
