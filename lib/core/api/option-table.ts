import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkIntegerOrInfinity,
  checkIsObject,
  checkOneOf,
  checkSignal,
  checkText,
  unknownOption,
} from './validation.js';

/**
 * How one option is checked, and what it is when the caller leaves it out. `D` is `undefined` for an option without a
 * default.
 */
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

  /** The same option, where the caller may not leave it out. */
  required(): Option<T> {
    return new Option<T>(this.check, undefined, true);
  }
}

export function integer(min: number, max: number, unit: string): Option<number> {
  return new Option<number>((option, value) => checkInteger(option, value, min, max, unit), undefined);
}

/** How many of something, `min` or more. */
export function atLeast(min: number, unit: string, max: number = Number.MAX_SAFE_INTEGER): Option<number> {
  return integer(min, max, unit);
}

/** A time in whole milliseconds. */
export function milliseconds(min: number, max: number = Number.MAX_SAFE_INTEGER): Option<number> {
  return integer(min, max, 'milliseconds');
}

/** A time in whole milliseconds, or `Infinity`. */
export function patience(): Option<number> {
  return countOrInfinity(0, 'milliseconds');
}

/** How many of something, `min` or more, or `Infinity`. */
export function countOrInfinity(min: number, unit: string): Option<number> {
  return new Option<number>((option, value) => checkIntegerOrInfinity(option, value, min, unit), undefined);
}

export function flag(): Option<boolean> {
  return new Option<boolean>(checkBoolean, undefined);
}

export function oneOf<T extends string>(allowed: readonly T[]): Option<T> {
  return new Option<T>((option, value) => checkOneOf(option, value, allowed), undefined);
}

/** A string that the pattern allows, which the message explains. */
export function text(pattern: RegExp, explained: string): Option<string> {
  return new Option<string>((option, value) => checkText(option, value, pattern, explained), undefined);
}

export function abortSignal(): Option<AbortSignal> {
  return new Option<AbortSignal>(checkSignal, undefined);
}

export function callback<F>(): Option<F> {
  return new Option<F>(checkFunction, undefined);
}

/** An option with a check of its own, or one that is checked together with others later. */
export function checked<T>(check: (option: string, value: unknown) => void = () => {}): Option<T> {
  return new Option<T>(check, undefined);
}

/** The options of a table, without some. */
export function without<T extends object, K extends keyof T>(options: T, ...names: readonly K[]): Omit<T, K> {
  const kept = Object.entries(options).filter(([name]) => !names.includes(name as K));
  return Object.fromEntries(kept) as Omit<T, K>;
}

type AnyOption = Option<unknown, unknown>;

/** What a table of the options `O` must have: an option of the right type for each of them, and no other. */
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
   *
   * @param where what they were passed to, for the message
   * @param within the option that contains these, for the message
   * @throws InvalidLockOptionsError
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
