import { checkOwnResource, groupNamed, onceResource } from '../../../kernel/api/resource.js';
import { Option, type OptionsOf, OptionTable, without } from '../../../kernel/api/validation.js';
import {
  CALL_LABEL,
  type CallOptions,
  LOCK_SERVICE,
  optionsOfCalls,
  readKey,
} from '../../../nest/decorators/lock-plan.js';
import type { KeyMistake, LockedMethodDecorator, Mistake } from '../../../nest/decorators/method-types.js';
import {
  addLockedMethod,
  checkIsOnlyArgument,
  declareLockService,
  describeMethod,
  type LockedMethod,
  lockedMethodsOf,
  markAsSkipping,
  mayBeSkipped,
  wrapMethod,
} from '../../../nest/decorators/method.js';
import { refusalOfFirstCall } from '../../../nest/decorators/transaction-order.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import type { Scan } from '../../../nest/scan.js';
import { groupsOf, partsOf } from '../../../nest/service-parts.js';
import { checkFormat, ONCE_OPTIONS, type OnceOptions } from '../core/once-options.js';

const DECORATOR = '@Once';

/** The options of `@Once`. `A`: the parameters of the key function. `R`: the result of `parse`. */
export interface OnceDecoratorOptions<A extends readonly unknown[] = [], R = never>
  extends Omit<OnceOptions<R>, 'signal' | 'label'>, Pick<CallOptions<A>, 'label'> {
  /**
   * The key of the result, or a function that returns it, called like the `key` function of a lock. The key must
   * contain everything that the result depends on.
   *
   * @allowed a name, or a function that returns one
   */
  key: string | ((...args: A) => string | Mistake<KeyMistake>);
  /**
   * The name of the lock service to use: its module option `service`.
   *
   * @allowed text
   * @default the default service
   */
  service?: string;
}

export const ONCE_DECORATOR_OPTIONS = new OptionTable({
  key: Option.checked<unknown>(),
  service: LOCK_SERVICE,
  ...without(ONCE_OPTIONS.options, 'signal'),
  label: CALL_LABEL,
} satisfies OptionsOf<Omit<OnceDecoratorOptions<never, never>, 'key'> & { key: unknown }>);

type AnyOptions = OnceDecoratorOptions<[], unknown>;

/**
 * **Not exactly-once: the method may run again after a crash**, or if its result has expired, was evicted by Redis or
 * lost in a failover.
 *
 * Runs the method once across all instances, and returns its result to every call with this key until `resultTtlMs` has
 * passed. Calls that arrive while it runs wait for it. A later call costs one `GET`. See `locks.once()`.
 *
 * - ``@Once({ key: (id: string) => key`report:${id}`, resultTtlMs: 60_000 })``
 *
 * The result is stored as JSON, and every call gets the parsed JSON: a `Date` is a string. If the method throws,
 * nothing is stored, and the error is passed on unchanged. Inside the method, `locks.current()` is the lease.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the application starts, on a
 *   quorum; when the method is called, if the key function throws or does not return one valid name
 * @throws LockModuleMissingError if Nest did not create the object
 * @throws the other errors of `locks.once()`
 */
export function Once<A extends readonly unknown[] = [], R = never>(
  options: OnceDecoratorOptions<A, R>,
): LockedMethodDecorator<A, R>;
export function Once(...given: readonly unknown[]): unknown {
  checkIsOnlyArgument('Once', given);
  return onceMethod(given[0] as AnyOptions);
}

function onceMethod(given: AnyOptions) {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor): void => {
    const where = describeMethod(target, propertyKey);
    const { key, lockService, options, optionsOf } = readOptions(given, where);
    const keysOf = readKey(key, `the result of ${where}`, where, checkKey);
    const lockServiceOf = declareLockService(target, lockService);
    /** Found out at the first call, when all decorators have been applied: `null` if its calls are made. */
    let refusal: Error | null | undefined;
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function once(this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const [name] = keysOf(this, args as []);
          if (refusal === undefined) refusal = refusalOfFirstCall(service, target, method, once) ?? null;
          if (refusal !== null) throw refusal;
          const runs = mayBeSkipped(this, target, propertyKey, DECORATOR);
          return service.once(name!, optionsOf({ self: this, args }), () => {
            runs();
            return original.apply(this, args);
          });
        },
    );
    markAsSkipping(descriptor.value as object, DECORATOR);
    const method: LockedMethod = {
      name: propertyKey,
      where,
      decorator: DECORATOR,
      wrapped: descriptor.value as LockedMethod['wrapped'],
      group: options.group,
      lockService,
      mode: 'exclusive',
      // For a job below a scheduler: the next instance does not run it again as long as the result is stored.
      onBusy: 'skip',
      minHoldMs: options.resultTtlMs,
    };
    addLockedMethod(target, method);
  };
}

/** Checks the options of the decorator, once, when the class is defined. */
function readOptions(given: AnyOptions, where: string) {
  ONCE_DECORATOR_OPTIONS.check(`The result of ${where}`, given);
  const { key, service: lockService, label, ...rest } = given;
  checkFormat(`The result of ${where}`, rest);
  const options = { ...rest, group: groupNamed(rest.group ?? where) };
  return { key, lockService, options, optionsOf: optionsOfCalls(options, { label }, where) };
}

function checkKey(name: unknown, source: string): readonly string[] {
  const key = checkOwnResource(name, source);
  onceResource(key);
  return [key];
}

/**
 * Registers the methods with `@Once` for metrics, which start at 0.
 *
 * @throws InvalidLockOptionsError if a method has `@Once` and the store can't store results
 */
export function registerOnceMethods(scan: Scan, service: RedisLockService): void {
  const parts = partsOf(service);
  for (const prototype of scan.allPrototypes) {
    for (const { decorator, where, group } of lockedMethodsOf(prototype).filter(scan.isOurs)) {
      if (decorator !== DECORATOR) continue;
      parts?.once.assertSupported(`${DECORATOR} of ${where}`);
      groupsOf(service)?.register('once', group);
    }
  }
}
