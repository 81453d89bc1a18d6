import {
  checkBoolean,
  checkFunction,
  checkInteger,
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
     * Throws an `InvalidLockOptionsError` that names the option, the value and what is allowed. `undefined` is never
     * passed.
     */
    readonly check: (option: string, value: unknown) => void,
    readonly fallback: D,
  ) {}

  default<V extends T>(value: V): Option<T, T> {
    return new Option<T, T>(this.check, value);
  }
}

/** An integer from `min` to `max`. */
export function integer(min: number, max: number, unit: string): Option<number> {
  return new Option<number>((option, value) => checkInteger(option, value, min, max, unit), undefined);
}

/** How many of something, `min` or more. */
export function count(min: number, unit: string): Option<number> {
  return integer(min, Number.MAX_SAFE_INTEGER, unit);
}

/** A time in whole milliseconds. */
export function milliseconds(min: number, max: number = Number.MAX_SAFE_INTEGER): Option<number> {
  return integer(min, max, 'milliseconds');
}

/** A time in whole milliseconds, or `Infinity`. */
export function patience(): Option<number> {
  return new Option<number>((option, value) => {
    if (value !== Infinity) checkInteger(option, value, 0, Number.MAX_SAFE_INTEGER);
  }, undefined);
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

type AnyOption = Option<unknown, unknown>;

/** What a table of the options `O` must have: an option of the right type for each of them, and no other. */
export type OptionsOf<O> = { readonly [K in keyof Required<O>]: { readonly fallback: O[K] | undefined } };

/** The names of the options that have a default. */
type NamesWithDefault<T extends Record<string, AnyOption>> = {
  [K in keyof T]: undefined extends T[K]['fallback'] ? never : K;
}[keyof T];

/** All options of one kind: their names, their checks and their defaults. */
export class OptionTable<T extends Record<string, AnyOption>> {
  readonly names: readonly string[];
  /** The defaults of the options that have one. */
  readonly defaults: { readonly [K in NamesWithDefault<T>]: NonNullable<T[K]['fallback']> };
  readonly #checks: ReadonlyMap<string, AnyOption['check']>;

  constructor(readonly options: T) {
    const entries = Object.entries(options);
    this.#checks = new Map(entries.map(([name, { check }]) => [name, check]));
    this.names = Object.keys(options);
    this.defaults = Object.fromEntries(
      entries.flatMap(([name, { fallback }]) => (fallback === undefined ? [] : [[name, fallback]])),
    ) as typeof this.defaults;
  }

  /**
   * Checks the given options, and that there are no others.
   *
   * @param where what they were passed to, for the message
   * @param within the option that contains these, for the message
   * @throws InvalidLockOptionsError
   */
  check(where: string, given: object, within = ''): void {
    checkIsObject(where, given);
    const values = given as Record<string, unknown>;
    for (const name of Object.keys(given)) {
      const check = this.#checks.get(name);
      if (check === undefined) throw unknownOption(where, name, this.names);
      const value = values[name];
      if (value !== undefined) check(within === '' ? name : within + name, value);
    }
    // What an object inherits is used like its own properties, so it is checked as well.
    if (Object.getPrototypeOf(given) !== Object.prototype) this.#checkAll(values, within);
  }

  #checkAll(values: Record<string, unknown>, within: string): void {
    for (const name of this.names) {
      const value = values[name];
      if (value !== undefined) this.#checks.get(name)!(within + name, value);
    }
  }
}
