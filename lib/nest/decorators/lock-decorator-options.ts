import {
  type AcquireMode,
  checkLockOptions,
  LOCK_OPTION_NAMES,
  type LockOptions,
} from '../../core/api/lock-options.js';
import { checkResources, type ResourceNames } from '../../core/api/resource.js';
import { checkKnownOptions } from '../../core/api/validation.js';
import {
  checkTerms,
  DECORATION_OPTION_NAMES,
  type DecorationOptions,
  type LockPlan,
  readKey,
  waitMsOf,
} from './lock-plan.js';

/** What `@ReadLock` and `@WriteLock` take. `A` is what the key function is called with. */
export interface ReadWriteLockOptions<A extends readonly unknown[] = []>
  extends DecorationOptions, Omit<LockOptions, 'mode' | 'signal'> {
  /**
   * The resource or resources, or a function that returns them. The function is called with the arguments of the
   * method, in `@LockHandler` with the `ExecutionContext` before the pipes. The tag ``key`order:${id}` `` refuses a
   * missing id.
   *
   * @allowed a name, an array of names, or a function that returns either
   */
  key: ResourceNames | ((...args: A) => ResourceNames);
}

/** What `@DistributedLock` and `@LockHandler` take. `A` is what the key function is called with. */
export interface LockDecoratorOptions<A extends readonly unknown[]>
  extends ReadWriteLockOptions<A>, Pick<LockOptions, 'mode'> {}

/**
 * Checks what a decorator was given, once, when the class is defined.
 *
 * @param where the decorated method, for messages
 * @param fixedMode of a decorator that stands for one
 */
export function readLockPlan<A extends readonly unknown[]>(
  given: LockDecoratorOptions<A>['key'] | LockDecoratorOptions<A>,
  where: string,
  fixedMode?: AcquireMode,
): LockPlan<A> {
  const isKey = typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
  const options = (isKey ? { key: given } : given) as LockDecoratorOptions<A>;
  checkKnownOptions(`The lock of ${where}`, options, [
    ...DECORATION_OPTION_NAMES,
    ...LOCK_OPTION_NAMES.filter((name) => name !== 'signal' && !(fixedMode && name === 'mode')),
  ]);
  const { key, onBusy, onLost, lockService, ...rest } = options;
  checkLockOptions(rest, `The lock of ${where}`);
  const terms = checkTerms({ onBusy, onLost, lockService });
  const waitMs = waitMsOf(terms.onBusy, rest);
  const lock = { ...rest, ...(fixedMode && { mode: fixedMode }), ...(waitMs !== undefined && { waitMs }) };
  const lockOptions = Object.keys(lock).length > 0 ? lock : undefined;
  return {
    ...terms,
    mode: lock.mode ?? 'exclusive',
    resources: readKey(key, where, checkResources),
    using: (service, resources, work, signal) =>
      service.using(
        resources.length === 1 ? resources[0]! : resources,
        signal ? { ...lockOptions, signal } : lockOptions,
        work,
      ),
  };
}
