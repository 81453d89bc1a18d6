import type { LockBusyError, LockQueueFullError, LockTimeoutError } from '../../core/api/errors.js';
import { InvalidLockOptionsError, InvalidResourceError } from '../../core/api/errors.js';
import type { LockedWork } from '../../core/api/locked-work.js';
import type { LockMode, LockOptions } from '../../core/api/lock-options.js';
import type { PermitRequest } from '../../core/api/permit-request.js';
import { checkOneOf, describeValue } from '../../core/api/validation.js';
import type { RedisLockService } from '../redis-lock.service.js';

/** Why a call did not get a resource that others want as well. */
export type BusyError = LockBusyError | LockTimeoutError | LockQueueFullError;

/** What a decorated method does when the resource is not free. */
export type OnBusy =
  /** Throws `LockBusyError`, `LockTimeoutError`, or `LockQueueFullError`. */
  | 'throw'
  /** Returns `undefined` without running. */
  | 'skip'
  /** Returns what this gives instead. */
  | ((busy: BusyError) => unknown);

/** What every decorator takes that runs a method under a lock or a semaphore. */
export interface DecorationOptions {
  /**
   * What a call does when the resource is still busy after `waitMs`, or `maxWaiters` already wait for it. `'throw'`:
   * it rejects with the error. `'skip'`: it returns `undefined` without running the method, and `waitMs` is 0 unless
   * it is set. A function: it returns what the function returns.
   *
   * @allowed `'throw'`, `'skip'`, a function
   * @default 'throw'
   */
  onBusy?: OnBusy;
  /**
   * What happens when the lease is lost while the method runs. `'abort'`: its `signal` aborts, and the result of the
   * method stands. `'throw'`: the call also rejects with `LeaseLostError` after the method has ended, even if an API
   * that was given the signal failed with its own `AbortError`.
   *
   * @default 'abort'
   */
  onLost?: 'abort' | 'throw';
  /**
   * The `name` of the lock service to use.
   *
   * @allowed text
   * @default the default one
   */
  lockService?: string;
}

export const DECORATION_OPTION_NAMES = ['key', 'onBusy', 'onLost', 'lockService'] as const;

/** What becomes of a call, whatever it locks. */
export interface DecorationTerms {
  readonly onBusy: OnBusy;
  readonly onLost: 'abort' | 'throw';
  readonly lockService: string | undefined;
}

/** How the resources are held. */
export interface Claim {
  readonly mode: LockMode;
  /** Semaphores only. */
  readonly permits?: Pick<PermitRequest, 'count' | 'total'> | undefined;
}

/** Checked options, taken apart. `A` is what the key function is called with. */
export interface LockPlan<A extends readonly unknown[]> extends DecorationTerms, Claim {
  /** The names to lock for a call, sorted and distinct. @throws InvalidLockOptionsError */
  resources(self: unknown, args: A): readonly string[];
  /**
   * Acquires these resources, does the work, and releases them.
   *
   * @param signal gives up waiting
   */
  using<T>(
    service: RedisLockService,
    resources: readonly string[],
    work: LockedWork<T>,
    signal?: AbortSignal,
  ): Promise<T>;
}

/** @throws InvalidLockOptionsError */
export function checkTerms({ onBusy = 'throw', onLost = 'abort', lockService }: DecorationOptions): DecorationTerms {
  if (typeof onBusy !== 'function') checkOneOf('onBusy', onBusy, ['throw', 'skip']);
  checkOneOf('onLost', onLost, ['abort', 'throw']);
  if (lockService !== undefined && (typeof lockService !== 'string' || lockService === '')) {
    throw new InvalidLockOptionsError(
      `lockService must be the name of a registration, not ${describeValue(lockService)}.`,
      'lockService',
    );
  }
  return { onBusy, onLost, lockService };
}

/** Who is skipped when the resource is busy does not wait for it, unless told to. */
export function waitMsOf(onBusy: OnBusy, { waitMs, retry }: LockOptions): number | undefined {
  return waitMs ?? (onBusy === 'skip' && !retry ? 0 : undefined);
}

/**
 * What gives the names for a call: those that are fixed, which are checked now, or those that the key function gives.
 *
 * @param where the decorated method, for messages
 * @param check gives the names, or throws InvalidLockOptionsError
 */
export function readKey<A extends readonly unknown[]>(
  key: unknown,
  where: string,
  check: (given: unknown, source: string) => readonly string[],
): LockPlan<A>['resources'] {
  const source = `the lock of ${where}`;
  if (typeof key === 'function') {
    return (self, args) => check(callKeyFunction(key as (...args: A) => unknown, self, args, where), source);
  }
  const names = check(key, source);
  return () => names;
}

function callKeyFunction<A extends readonly unknown[]>(
  key: (...args: A) => unknown,
  self: unknown,
  args: A,
  where: string,
): unknown {
  try {
    return key.apply(self, args as A & unknown[]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const Kind = error instanceof InvalidResourceError ? InvalidResourceError : InvalidLockOptionsError;
    throw new Kind(`The key function of ${where} threw: ${why}`, 'key', { cause: error });
  }
}
