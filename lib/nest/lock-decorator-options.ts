import type { LockBusyError, LockQueueFullError, LockTimeoutError } from '../core/errors.js';
import { InvalidLockOptionsError } from '../core/errors.js';
import { checkLockOptions, LOCK_OPTION_NAMES, type LockOptions } from '../core/lock-options.js';
import { checkResources, type ResourceNames } from '../core/resource.js';
import { checkKnownOptions, checkOneOf, describeValue } from '../core/validation.js';

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

/** What `@DistributedLock` and `@LockHandler` take. `A` is what the key function is called with. */
export interface LockDecoratorOptions<A extends readonly unknown[]> extends Omit<LockOptions, 'signal'> {
  /** The resource or resources, or a function that gives them. */
  key: ResourceNames | ((...args: A) => ResourceNames);
  /** With `'skip'` the default of `waitMs` is 0: who does not care to run does not care to wait. @default 'throw' */
  onBusy?: OnBusy;
  /**
   * What happens when the lease is lost while the method runs. `'abort'`: its `signal` aborts, and the method's own result
   * stands. `'throw'`: the call also rejects with `LeaseLostError`, once the method has ended. @default 'abort'
   */
  onLost?: 'abort' | 'throw';
  /** The `name` of the lock service. @default the default one */
  lockService?: string;
}

/** Checked options, taken apart. */
export interface LockDecoration<A extends readonly unknown[]> {
  readonly onBusy: OnBusy;
  readonly onLost: 'abort' | 'throw';
  readonly lockService: string | undefined;
  readonly lockOptions: LockOptions | undefined;
  /** The names to lock for a call, sorted and distinct. @throws InvalidLockOptionsError */
  resources(self: unknown, args: A): readonly string[];
}

const OWN_OPTION_NAMES = ['key', 'onBusy', 'onLost', 'lockService'];

/**
 * Checks what a decorator was given, once, when the class is defined.
 *
 * @param where the decorated method, for messages
 */
export function readLockDecoration<A extends readonly unknown[]>(
  given: LockDecoratorOptions<A>['key'] | LockDecoratorOptions<A>,
  where: string,
): LockDecoration<A> {
  const isKey = typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
  const options = (isKey ? { key: given } : given) as LockDecoratorOptions<A>;
  checkKnownOptions(`The lock of ${where}`, options, [
    ...OWN_OPTION_NAMES,
    ...LOCK_OPTION_NAMES.filter((name) => name !== 'signal'),
  ]);
  const { key, onBusy = 'throw', onLost = 'abort', lockService, ...lockOptions } = options;
  checkLockOptions(lockOptions, `The lock of ${where}`);
  if (typeof onBusy !== 'function') checkOneOf('onBusy', onBusy, ['throw', 'skip']);
  checkOneOf('onLost', onLost, ['abort', 'throw']);
  if (lockService !== undefined && (typeof lockService !== 'string' || lockService === '')) {
    throw new InvalidLockOptionsError(
      `lockService must be the name of a registration, not ${describeValue(lockService)}.`,
      'lockService',
    );
  }
  const resources =
    typeof key === 'function'
      ? (self: unknown, args: A) => checkResources(callKeyFunction(key, self, args, where), `the lock of ${where}`)
      : constant(checkResources(key, `the lock of ${where}`));
  if (onBusy === 'skip') lockOptions.waitMs ??= lockOptions.retry ? undefined : 0;
  const hasLockOptions = Object.keys(lockOptions).length > 0;
  return { onBusy, onLost, lockService, lockOptions: hasLockOptions ? lockOptions : undefined, resources };
}

function constant<T>(value: T): () => T {
  return () => value;
}

function callKeyFunction<A extends readonly unknown[]>(
  key: (...args: A) => ResourceNames,
  self: unknown,
  args: A,
  where: string,
): ResourceNames {
  try {
    return key.apply(self, args as A & unknown[]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidLockOptionsError(`The key function of ${where} threw: ${why}`, 'key', { cause: error });
  }
}
