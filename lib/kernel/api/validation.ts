import { InvalidLockOptionsError, InvalidResourceError } from './errors.js';
import { nearest, otherWord } from './nearest.js';
import { describeThrown, escapeText, quote } from '../util/quoted.js';

/** Describes a value for a message: short, quoted, and without the content of objects. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value, 60);
  if (value === null || typeof value !== 'object') return typeof value === 'function' ? 'a function' : String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return `an object (${classOf(value)})`;
}

function classOf(value: object): string {
  try {
    const name: unknown = value.constructor?.name;
    return typeof name === 'string' ? escapeText(name) : 'no prototype';
  } catch {
    return 'of an unknown class';
  }
}

/** The error for an option with a value that it cannot have. @param allowed what it must be */
export function wrongValue(option: string, allowed: string, value: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${option} must be ${allowed}, not ${describeValue(value)}.`, option);
}

export function checkInteger(option: string, value: unknown, min: number, max: number, unit = 'milliseconds'): void {
  if (isIntegerBetween(value, min, max)) return;
  const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  throw wrongValue(option, `an integer ${range} (${unit})`, value);
}

function isIntegerBetween(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

export function checkFunction(option: string, value: unknown): void {
  if (typeof value === 'function') return;
  throw wrongValue(option, 'a function', value);
}

export function checkOneOf(option: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  const list = allowed.map((name) => `'${name}'`).join(', ');
  throw wrongValue(option, `one of ${list}`, value);
}

/** @param where the owner of the function, for the message */
export function optionFunctionThrew(option: 'key' | 'label', where: string, error: unknown): InvalidLockOptionsError {
  const Kind = error instanceof InvalidResourceError ? InvalidResourceError : InvalidLockOptionsError;
  return new Kind(`The ${option} function of ${where} threw: ${describeThrown(error)}`, option, { cause: error });
}

/** @param explained what the pattern allows, for the message */
export function checkText(option: string, value: unknown, allowed: RegExp, explained: string): void {
  if (typeof value === 'string' && allowed.test(value) && value.isWellFormed()) return;
  throw wrongValue(option, explained, value);
}

/** Refuses anything but an options object with these keys, and suggests the key that was probably meant. */
export function checkKnownOptions(where: string, options: unknown, known: readonly string[]): void {
  checkIsObject(where, options);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw unknownOption(where, name, known);
  }
}

/** @throws InvalidLockOptionsError for `null`, an array, and anything that is not an object */
export function checkIsObject(where: string, options: unknown): asserts options is object {
  if (options !== null && typeof options === 'object' && !Array.isArray(options)) return;
  // A string in the place of options may be a connection URL with its password.
  const given = typeof options === 'string' ? 'a string' : describeValue(options);
  const isTime = typeof options === 'number' && where === 'lock options';
  const advice = isTime ? ` Name the option: { waitMs: ${options} } or { leaseMs: ${options} }.` : '';
  throw new InvalidLockOptionsError(`${where} must be an object, not ${given}.${advice}`, where);
}

/** The error for an unknown option. It suggests the option that was probably meant. */
export function unknownOption(where: string, name: string, known: readonly string[]): InvalidLockOptionsError {
  const isPlural = where.endsWith(' options');
  const near = nearest(name, known);
  const advice = otherWord(name, known) ?? (near ? `Did you mean ${near}?` : `Known options: ${known.join(', ')}.`);
  return new InvalidLockOptionsError(
    `${where} ${isPlural ? 'do not include' : 'has no option'} ${describeValue(name)}. ${advice}`,
    name,
  );
}

/** The check of one option, and its default. `D` is `undefined` for an option without a default. */
export class Option<T, D extends T | undefined = undefined> {
  constructor(
    /**
     * Throws an `InvalidLockOptionsError` that names the option, the value and what is allowed. A table passes
     * `undefined` only for a required option.
     */
    readonly check: (option: string, value: unknown) => void,
    readonly fallback: D,
    readonly isRequired = false,
  ) {}

  default<V extends T>(value: V): Option<T, T> {
    return new Option<T, T>(this.check, value);
  }

  /** The same option without a default. */
  required(): Option<T> {
    return new Option<T>(this.check, undefined, true);
  }

  static integer(min: number, max: number, unit: string): Option<number> {
    return Option.checked<number>((option, value) => checkInteger(option, value, min, max, unit));
  }

  /** A count of `min` or more. */
  static atLeast(min: number, unit: string, max: number = Number.MAX_SAFE_INTEGER): Option<number> {
    return Option.integer(min, max, unit);
  }

  /** A time in whole milliseconds. */
  static milliseconds(min: number, max: number = Number.MAX_SAFE_INTEGER): Option<number> {
    return Option.integer(min, max, 'milliseconds');
  }

  /** A time in whole milliseconds, or `Infinity`. */
  static durationOrInfinity(): Option<number> {
    return Option.countOrInfinity(0, 'milliseconds');
  }

  /** A count of `min` or more, or `Infinity`. */
  static countOrInfinity(min: number, unit: string): Option<number> {
    return Option.checked<number>((option, value) => {
      if (value === Infinity || isIntegerBetween(value, min, Number.MAX_SAFE_INTEGER)) return;
      throw wrongValue(option, `an integer of ${min} or more (${unit}) or Infinity`, value);
    });
  }

  static flag(): Option<boolean> {
    return Option.checked<boolean>((option, value) => {
      if (typeof value !== 'boolean') throw wrongValue(option, 'true or false', value);
    });
  }

  static oneOf<T extends string>(allowed: readonly T[]): Option<T> {
    return Option.checked<T>((option, value) => checkOneOf(option, value, allowed));
  }

  /** A string that the pattern allows, which the message explains. */
  static text(pattern: RegExp, explained: string): Option<string> {
    return Option.checked<string>((option, value) => checkText(option, value, pattern, explained));
  }

  static abortSignal(): Option<AbortSignal> {
    return Option.checked<AbortSignal>((option, value) => {
      if (!(value instanceof AbortSignal)) throw wrongValue(option, 'an AbortSignal', value);
    });
  }

  static callback<F>(): Option<F> {
    return Option.checked<F>(checkFunction);
  }

  /** An option with a check of its own, or one that is checked together with others later. */
  static checked<T>(check: (option: string, value: unknown) => void = () => {}): Option<T> {
    return new Option<T>(check, undefined);
  }
}

/** The options of each command of an operator: the requester, and the reason. */
export const OPERATOR = {
  by: Option.text(/^[^]{1,100}$/, '1 to 100 characters'),
  reason: Option.text(/^[^]{1,200}$/, '1 to 200 characters'),
};

/** Some options of a table, in this order. */
export function pick<T extends object, K extends keyof T>(options: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, options[name]])) as Pick<T, K>;
}

/** The options of a table, without some. */
export function without<T extends object, K extends keyof T>(options: T, ...names: readonly K[]): Omit<T, K> {
  const kept = Object.entries(options).filter(([name]) => !names.includes(name as K));
  return Object.fromEntries(kept) as Omit<T, K>;
}

type AnyOption = Option<unknown, unknown>;

/** The shape of a table of the options `O`: an option of the right type for each of them, and no other. */
export type OptionsOf<O> = { readonly [K in keyof Required<O>]: { readonly fallback: O[K] | undefined } };

/** The names of the options that have a default. */
type NamesWithDefault<T extends Record<string, AnyOption>> = {
  [K in keyof T]: undefined extends T[K]['fallback'] ? never : K;
}[keyof T];

/** All options of one kind: their names, their checks and their defaults. */
export class OptionTable<T extends Record<string, AnyOption> = Record<string, AnyOption>> {
  readonly names: readonly string[];
  /** The defaults of the options that have one. */
  readonly defaults: { readonly [K in NamesWithDefault<T>]: NonNullable<T[K]['fallback']> };
  /** Without a prototype, so that no name finds what every object inherits. */
  readonly #checks: Readonly<Record<string, AnyOption['check']>>;
  readonly #required: readonly string[];

  constructor(readonly options: T) {
    const entries = Object.entries(options);
    const checks = Object.create(null) as Record<string, AnyOption['check']>;
    for (const [name, { check }] of entries) checks[name] = check;
    this.#checks = checks;
    this.#required = entries.flatMap(([name, { isRequired }]) => (isRequired ? [name] : []));
    this.names = Object.keys(options);
    this.defaults = Object.fromEntries(
      entries.flatMap(([name, { fallback }]) => (fallback === undefined ? [] : [[name, fallback]])),
    ) as typeof this.defaults;
  }

  /**
   * Checks the given options, and that there are no others. It runs at each call to acquire, so it allocates nothing.
   * @param within the option that contains these, for the message
   */
  check(where: string, given: object, within = ''): void {
    checkIsObject(where, given);
    const values = given as Record<string, unknown>;
    const checks = this.#checks;
    for (const name in values) {
      const check = checks[name];
      if (check !== undefined) {
        const value = values[name];
        if (value !== undefined) check(within === '' ? name : within + name, value);
      } else if (Object.hasOwn(values, name)) throw unknownOption(where, name, this.names);
    }
    // The getters of a class are used like other properties, but the loop does not see them.
    if (Object.getPrototypeOf(values) !== Object.prototype) this.#checkAll(values, within);
    if (this.#required.length > 0) this.#checkRequired(values, within);
  }

  /** Returns the given options with the defaults filled in. */
  filled<O extends object>(given: O): O & typeof this.defaults {
    const values = given as Readonly<Record<string, unknown>>;
    const stated = this.names.filter((name) => values[name] !== undefined);
    return { ...this.defaults, ...pick(values, ...stated) } as O & typeof this.defaults;
  }

  #checkAll(values: Record<string, unknown>, within: string): void {
    for (const name of this.names) {
      const value = values[name];
      if (value !== undefined) this.#checks[name]!(within + name, value);
    }
  }

  #checkRequired(values: Record<string, unknown>, within: string): void {
    for (const name of this.#required) {
      if (values[name] === undefined) this.#checks[name]!(within + name, undefined);
    }
  }
}
