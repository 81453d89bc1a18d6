import { checkMinHold } from '../../core/api/lock-options.js';
import { type OptionsOf, OptionTable, without } from '../../core/api/option-table.js';
import { checkOwnResource, groupNamed } from '../../core/api/resource.js';
import {
  checkPermits,
  PERMIT_OPTIONS,
  type PermitOptions,
  readCount,
  SEMAPHORE_OPTIONS,
} from '../../core/semaphore/semaphore-options.js';
import {
  type AnyOnBusy,
  resolveDecoratorOptions,
  DECORATOR_OPTIONS,
  type DecoratorOptions,
  type LockPlan,
  type OnBusy,
  readKey,
  waitMsOf,
} from './lock-plan.js';

/**
 * What `@DistributedSemaphore` takes, and `@LockHandler` too. `A` is what the key function is called with, and `B` the
 * value of `onBusy`.
 */
export interface SemaphoreDecoratorOptions<A extends readonly unknown[] = [], B extends AnyOnBusy = OnBusy<A>>
  extends DecoratorOptions<B>, Omit<PermitOptions, 'signal'> {
  /**
   * The name of the semaphore, or a function that returns it. The function is called with the arguments of the
   * method, in `@LockHandler` with the `ExecutionContext` before the pipes. Its `this` is the object of the method,
   * which `@LockHandler` does not know.
   *
   * @allowed a name, or a function that returns one
   */
  key: string | ((...args: A) => string);
  /** How many permits the whole fleet has. Every caller must state the same number. @allowed 1 to 1000000 */
  permits: number;
}

export const SEMAPHORE_DECORATOR_OPTIONS = new OptionTable({
  ...DECORATOR_OPTIONS.options,
  ...SEMAPHORE_OPTIONS.options,
  ...without(PERMIT_OPTIONS.options, 'signal'),
} satisfies OptionsOf<SemaphoreDecoratorOptions<never, AnyOnBusy>>);

/**
 * Checks the options of a decorator, once, when the class is defined.
 *
 * @param where the decorated method, for messages
 * @throws InvalidLockOptionsError
 */
export function readSemaphorePlan<A extends readonly unknown[]>(
  options: SemaphoreDecoratorOptions<A, AnyOnBusy>,
  where: string,
): LockPlan<A> {
  SEMAPHORE_DECORATOR_OPTIONS.check(`The semaphore of ${where}`, options);
  checkMinHold(options);
  const { key, permits, onBusy, onLost, service: lockService, ...rest } = options;
  const total = checkPermits(permits, `the semaphore of ${where}`);
  const count = readCount(rest, total);
  const resolved = resolveDecoratorOptions({ onBusy, onLost, service: lockService });
  const waitMs = waitMsOf(resolved.onBusy, rest);
  const group = groupNamed(rest.group ?? where);
  const permitOptions: PermitOptions = { ...rest, ...(waitMs !== undefined && { waitMs }), group };
  return {
    ...resolved,
    group,
    ignoresTransaction: rest.ignoreTransaction === true,
    minHoldMs: rest.minHoldMs ?? 0,
    mode: 'semaphore',
    permits: { count, total },
    resources: readKey(key, where, (name, source) => [checkOwnResource(name, source)]),
    using: (service, [resource], work, signal) =>
      service
        .semaphore(resource!, { permits: total })
        .using(signal ? { ...permitOptions, signal } : permitOptions, work),
  };
}
