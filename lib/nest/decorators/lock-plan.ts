import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import type { LockedWork } from '../../kernel/api/lease.js';
import {
  type AcquireMode,
  checkMinHold,
  checkNewestFirst,
  fixedOptions,
  isNewestFirst,
  LOCK_OPTIONS,
  type LockOptions,
  type OnLost,
  type PlaceInLine,
} from '../../kernel/api/lock-options.js';
import { checkLabel } from '../../kernel/api/given-label.js';
import type { LockLabel } from '../../kernel/api/holder.js';
import { checkOwnResource, checkResources, groupNamed, type ResourceNames } from '../../kernel/api/resource.js';
import {
  checkOneOf,
  describeValue,
  Option,
  optionFunctionThrew,
  type OptionsOf,
  OptionTable,
  without,
  wrongValue,
} from '../../kernel/api/validation.js';
import {
  checkPermits,
  PERMIT_OPTIONS,
  type PermitOptions,
  readCount,
  SEMAPHORE_OPTIONS,
} from '../../kernel/semaphore/semaphore-options.js';
import type { RedisLockService } from '../redis-lock.service.js';
import type { LockAccess } from './intercepted-call.js';
import type { AnyOnBusy, KeyMistake, Mistake, OnBusy } from './method-types.js';

// Any `onBusy` of a lock with one holder: only a single holder can be asked to stop.
export type LockOnBusy = AnyOnBusy | 'cancelHolder';

/** The options of every decorator that runs a method under a lock or a semaphore. */
export interface DecoratorOptions<B extends LockOnBusy = OnBusy> {
  /**
   * Decides what a call does if the resource is still busy after `waitMs`, or its queue is full. `'throw'` rejects with
   * the error. `'skip'` returns `undefined` without running the method; `waitMs` then defaults to 0. A function gets
   * the error and the method's arguments (in `@LockHandler`, the `ExecutionContext`), with the method's `this`. The
   * function's result is the result of the call, so the method's return type must include it. `'cancelHolder'` (only
   * `@DistributedLock` and `@LockHandler`) asks a `cancellable` holder to stop, waits, and then works like `'throw'`.
   *
   * @allowed `'throw'`, `'skip'`, `'cancelHolder'`, a function
   * @default 'throw'
   */
  onBusy?: B;
  /**
   * The name of the lock service to use: its module option `service`.
   *
   * @allowed text
   * @default the default service
   */
  service?: string;
}

/** The options that describe one call. `A`: the parameters of the key function. */
export interface CallOptions<A extends readonly unknown[]> {
  /**
   * Describes the call to other processes, in errors, events, `inspect` and `list`: plain JSON, or a function that
   * returns it from the method's arguments, with the method's `this`. Stored in Redis as is, so leave secrets out.
   *
   * @allowed an object of at most 256 bytes as JSON, or a function that returns one
   * @default none
   * @see docs/operations/at-3-am.md#which-work-holds-the-lock
   */
  label?: LockLabel | ((...args: A) => LockLabel);
  /**
   * Called like the lock option `onWait`: after 50 ms, then on every change, at most once a second. The function gets
   * the place in line, then the method's arguments, with the method's `this`. Can't be combined with `retry`.
   *
   * @allowed a function
   * @default none
   * @see docs/guide/one-turn.md#show-a-place-in-line
   */
  onWait?: (place: PlaceInLine, ...args: A) => void;
}

/** The options of `@ReadLock` and `@WriteLock`. `A`: the parameters of the key function. `B`: the value of `onBusy`. */
export interface ReadWriteLockOptions<A extends readonly unknown[] = [], B extends LockOnBusy = OnBusy<A>>
  extends
    DecoratorOptions<B>,
    CallOptions<A>,
    Omit<LockOptions, 'mode' | 'signal' | 'onBusy' | 'cancellable' | 'label' | 'onWait'> {
  /**
   * The resource or resources, or a function that returns them. The function gets the method's arguments, with the
   * method's `this`; in `@LockHandler`, only the `ExecutionContext`, before any pipe has run. The `key` tag, as in
   * ``key`order:${id}` ``, rejects a missing id.
   *
   * @allowed a name, an array of names, or a function that returns either
   */
  key: ResourceNames | ((...args: A) => ResourceNames | Mistake<KeyMistake>);
}

/**
 * The options of `@DistributedLock` and `@LockHandler`. `A`: the parameters of the key function. `B`: the value of
 * `onBusy`.
 */
export interface LockDecoratorOptions<
  A extends readonly unknown[] = [],
  B extends LockOnBusy = OnBusy<A> | 'cancelHolder',
>
  extends ReadWriteLockOptions<A, B>, Pick<LockOptions, 'mode' | 'cancellable'> {}

/** The `service` of a registration. */
export const LOCK_SERVICE = Option.checked<string>(checkLockService);

export const DECORATOR_OPTIONS = new OptionTable({
  key: Option.checked<unknown>(),
  onBusy: Option.checked<AnyOnBusy>((option, value) => checkOnBusy(option, value)).default('throw'),
  service: LOCK_SERVICE,
} satisfies OptionsOf<DecoratorOptions<AnyOnBusy> & { key: unknown }>);

/** A label is checked at each call if a function returns it. */
export const CALL_LABEL = Option.checked<LockLabel | (() => LockLabel)>((option, value) => {
  if (typeof value !== 'function') checkLabel(option, value);
});

const READ_WRITE_OPTIONS = new OptionTable({
  ...DECORATOR_OPTIONS.options,
  ...without(LOCK_OPTIONS.options, 'mode', 'signal', 'onBusy', 'cancellable'),
  label: CALL_LABEL,
} satisfies OptionsOf<ReadWriteLockOptions<never, AnyOnBusy>>);

export const LOCK_DECORATOR_OPTIONS = new OptionTable({
  ...DECORATOR_OPTIONS.options,
  ...without(LOCK_OPTIONS.options, 'signal', 'onBusy'),
  label: CALL_LABEL,
  onBusy: Option.checked<LockOnBusy>((option, value) => checkOnBusy(option, value, 'cancelHolder')).default('throw'),
} satisfies OptionsOf<LockDecoratorOptions<never, LockOnBusy>>);

/** The checked options of one decorated method. `A`: the parameters of the key function. */
export interface LockPlan<A extends readonly unknown[]> extends LockAccess {
  readonly onBusy: AnyOnBusy;
  readonly onLost: OnLost;
  readonly lockService: string | undefined;
  /** See `LockOptions.minHoldMs`. */
  readonly minHoldMs: number;
  /** The name of this kind of lock in events and metrics: static, never an id. Decorators use `Class.method`. */
  readonly group: string;
  /** The names that every call locks; undefined if a key function returns them. */
  readonly fixed?: readonly string[];
  /** Returns the names to lock for a call, sorted and distinct. @throws InvalidLockOptionsError */
  resources(self: unknown, args: A): readonly string[];
  /** Acquires these resources, does the work, and releases them. */
  using<T>(
    service: RedisLockService,
    resources: readonly string[],
    work: LockedWork<T>,
    call: DecoratedCall,
  ): Promise<T>;
}

/** One call of a decorated method. */
export interface DecoratedCall {
  /** `this` of the option functions. */
  readonly self: unknown;
  readonly args: readonly unknown[];
  /** Ends the wait for the lock. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the options of a call: the fixed ones, and those that depend on the call.
 *
 * @param where the decorated method, for messages
 */
export function optionsOfCalls<O extends object>(
  fixed: O,
  { label, onWait }: CallOptions<never>,
  where: string,
): (call: DecoratedCall) => O {
  const labelOf = typeof label === 'function' ? (label as (...args: readonly unknown[]) => LockLabel) : undefined;
  const toldBy = onWait as ((place: PlaceInLine, ...args: readonly unknown[]) => void) | undefined;
  const shared = fixedOptions(labelOf || label === undefined ? fixed : { ...fixed, label });
  return ({ self, args, signal }) => {
    if (labelOf === undefined && toldBy === undefined && signal === undefined) return shared;
    return {
      ...shared,
      ...(signal && { signal }),
      ...(labelOf && { label: callOptionFunction('label', () => labelOf.apply(self, args as unknown[]), where) }),
      ...(toldBy && { onWait: (place: PlaceInLine) => toldBy.call(self, place, ...args) }),
    };
  };
}

/**
 * Checks the options of a decorator, once, when the class is defined.
 *
 * @param fixedMode the mode of `@ReadLock` and `@WriteLock`
 */
export function readLockPlan<A extends readonly unknown[]>(
  given: LockDecoratorOptions<A>['key'] | LockDecoratorOptions<A, LockOnBusy>,
  where: string,
  fixedMode?: AcquireMode,
): LockPlan<A> {
  const isKey = typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
  const options = (isKey ? { key: given } : given) as LockDecoratorOptions<A, LockOnBusy>;
  (fixedMode ? READ_WRITE_OPTIONS : LOCK_DECORATOR_OPTIONS).check(`The lock of ${where}`, options);
  const { key, onBusy: whenBusy, service, label, onWait, ...rest } = options;
  const [onBusy, cancels] = whenBusy === 'cancelHolder' ? [undefined, { onBusy: whenBusy }] : [whenBusy];
  const plan = readCommon({ ...rest, onBusy, service }, where);
  const mode = fixedMode && { mode: fixedMode };
  const lock: LockOptions = { ...rest, ...mode, ...cancels, ...waitOf(plan.onBusy, rest), group: plan.group };
  const resources = readKey<A>(key, `the lock of ${where}`, where, checkResources);
  const fixed = typeof key === 'function' ? undefined : { fixed: checkResources(key, where) };
  if (isNewestFirst(lock)) checkNewestFirst(lock, fixed?.fixed.length);
  const optionsOf = optionsOfCalls(lock, { label, onWait }, where);
  return {
    ...plan,
    mode: lock.mode ?? 'exclusive',
    resources,
    ...fixed,
    using: (service, names, work, call) => service.using(names.length === 1 ? names[0]! : names, optionsOf(call), work),
  };
}

/**
 * The options of `@DistributedSemaphore`, and of `@LockHandler` for a semaphore. `A`: the parameters of the key
 * function. `B`: the value of `onBusy`.
 */
export interface SemaphoreDecoratorOptions<A extends readonly unknown[] = [], B extends AnyOnBusy = OnBusy<A>>
  extends DecoratorOptions<B>, CallOptions<A>, Omit<PermitOptions, 'signal' | 'label' | 'onWait'> {
  /**
   * The name of the semaphore, or a function that returns it, called like the `key` function of a lock.
   *
   * @allowed a name, or a function that returns one
   */
  key: string | ((...args: A) => string | Mistake<KeyMistake>);
  /**
   * The number of permits across all instances. Every caller must pass the same number.
   *
   * @allowed 1 to 1000000
   */
  permits: number;
}

export const SEMAPHORE_DECORATOR_OPTIONS = new OptionTable({
  ...DECORATOR_OPTIONS.options,
  ...SEMAPHORE_OPTIONS.options,
  ...without(PERMIT_OPTIONS.options, 'signal'),
  label: CALL_LABEL,
} satisfies OptionsOf<SemaphoreDecoratorOptions<never, AnyOnBusy>>);

/** Checks the options of a decorator, once, when the class is defined. */
export function readSemaphorePlan<A extends readonly unknown[]>(
  options: SemaphoreDecoratorOptions<A, AnyOnBusy>,
  where: string,
): LockPlan<A> {
  SEMAPHORE_DECORATOR_OPTIONS.check(`The semaphore of ${where}`, options);
  const plan = readCommon(options, where);
  const { key, permits } = options;
  const rest = without(options, 'key', 'permits', 'onBusy', 'service', 'label', 'onWait');
  const total = checkPermits(permits, `the semaphore of ${where}`);
  const count = readCount(rest, total);
  const fixed: PermitOptions = { ...rest, ...waitOf(plan.onBusy, rest), group: plan.group };
  const optionsOf = optionsOfCalls(fixed, options, where);
  return {
    ...plan,
    mode: 'semaphore',
    permits: { count, total },
    resources: readKey<A>(key, `the lock of ${where}`, where, (name, source) => [checkOwnResource(name, source)]),
    using: (service, [resource], work, call) =>
      service.semaphore(resource!, { permits: total }).using(optionsOf(call), work),
  };
}

/** Reads the options that locks and semaphores share. */
function readCommon(
  options: DecoratorOptions<AnyOnBusy> & Omit<LockOptions, 'onBusy' | 'mode' | 'label' | 'onWait'>,
  where: string,
) {
  checkMinHold(options);
  const { onBusy } = DECORATOR_OPTIONS.filled(options);
  return {
    onBusy,
    onLost: options.onLost ?? LOCK_OPTIONS.defaults.onLost,
    lockService: options.service,
    group: groupNamed(options.group ?? where),
    minHoldMs: options.minHoldMs ?? 0,
  };
}

function checkOnBusy(option: string, onBusy: unknown, ...more: readonly string[]): void {
  if (typeof onBusy !== 'function') checkOneOf(option, onBusy, ['throw', 'skip', ...more]);
}

function checkLockService(option: string, name: unknown): void {
  if (typeof name === 'string' && name !== '') return;
  throw wrongValue(option, 'the name of a registration', name);
}

/** With `onBusy: 'skip'`, a call does not wait, unless `waitMs` or `retry` is set. */
function waitOf(onBusy: AnyOnBusy, { waitMs, retry }: LockOptions): Pick<LockOptions, 'waitMs'> {
  return waitMs === undefined && onBusy === 'skip' && !retry ? { waitMs: 0 } : {};
}

/**
 * Reads the key option. Fixed names are checked now, names from a key function at each call.
 *
 * @param source what the key is for, and the decorated method, for messages
 * @param check returns the names, or throws InvalidLockOptionsError
 * @returns a function that returns the names for a call
 */
export function readKey<A extends readonly unknown[]>(
  key: unknown,
  source: string,
  where: string,
  check: (given: unknown, source: string) => readonly string[],
): LockPlan<A>['resources'] {
  if (key === undefined) {
    throw new InvalidLockOptionsError(
      `key is missing in ${source}: it names the resource to lock. Write key: 'reports', or a function of the ` +
        'parameters: key: (id: string) => key`order:${id}`.',
      'key',
    );
  }
  if (typeof key === 'function') {
    const names = key as (...args: unknown[]) => unknown;
    return (self, args) =>
      check(
        callOptionFunction('key', () => names.apply(self, args as A & unknown[]), where),
        source,
      );
  }
  const names = check(key, source);
  for (const name of names) {
    checkIsFilledIn('key', name, source, `Write a function with backticks: (id) => key\`order:\${id}\`.`);
  }
  return () => names;
}

/**
 * Refuses a text with `${`: in plain quotes instead of backticks, all calls would share one name.
 *
 * @param where the function or option that takes the text, for the message
 * @param remedy the last sentence of the message
 */
export function checkIsFilledIn(option: string, text: string, where: string, remedy = 'Write it in backticks.'): void {
  if (!text.includes('${')) return;
  throw new InvalidLockOptionsError(
    `The ${option} of ${where} is ${describeValue(text)}. In plain quotes, \${...} is not replaced by a value. ` +
      remedy,
    option,
  );
}

function callOptionFunction<T>(option: 'key' | 'label', call: () => T, where: string): T {
  try {
    return call();
  } catch (error) {
    throw optionFunctionThrew(option, where, error);
  }
}
