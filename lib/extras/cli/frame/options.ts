import { formatDuration } from '../../../kernel/util/durations.js';
import { UsageError } from './exit-codes.js';

/** An option without a value, such as `--json`. */
export interface FlagOption {
  readonly type: 'flag';
  readonly summary: string;
}

/** An option with a value, such as `--wait 10m`. */
export interface ValueOption<T> {
  readonly type: 'value';
  readonly summary: string;
  /** The placeholder of the value in the help, such as `duration`. */
  readonly value: string;
  /** The option may be given without a value: `read` gets an empty text. */
  readonly isValueOptional?: boolean;
  /** @throws UsageError */
  readonly read: (text: string, option: string) => T;
}

/** The options of a command, by their names without dashes. */
export type OptionSpecs = Readonly<Record<string, FlagOption | ValueOption<unknown>>>;

/** The values of a call: `false` and `undefined` for options that it left out. */
export type OptionValues<S extends OptionSpecs> = {
  readonly [K in keyof S]: S[K] extends ValueOption<infer T> ? T | undefined : boolean;
};

export function flagOption(summary: string): FlagOption {
  return { type: 'flag', summary };
}

export function textOption(value: string, summary: string): ValueOption<string> {
  return { type: 'value', value, summary, read: (given) => given };
}

export function choiceOption<T extends string>(choices: readonly T[], summary: string): ValueOption<T> {
  return {
    type: 'value',
    value: choices.join('|'),
    summary,
    read: (given, option) => {
      const choice = choices.find((each) => each === given);
      if (choice !== undefined) return choice;
      throw new UsageError(`--${option} must be ${choices.join(' or ')}, not ${JSON.stringify(given)}.`);
    },
  };
}

export function integerOption(value: string, summary: string, least = 1): ValueOption<number> {
  return {
    type: 'value',
    value,
    summary,
    read: (given, option) => {
      const number = Number(given);
      if (/^\d+$/.test(given) && Number.isSafeInteger(number) && number >= least) return number;
      throw new UsageError(`--${option} must be a whole number, ${least} or more, not ${JSON.stringify(given)}.`);
    },
  };
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * A time such as `500ms`, `30s`, `10m`, `2h` or `1d`, in milliseconds.
 *
 * @param mostMs the maximum
 */
export function durationOption(summary: string, mostMs = Infinity): ValueOption<number> {
  return {
    type: 'value',
    value: 'duration',
    summary,
    read: (given, option) => {
      const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|min|h|d)$/.exec(given) ?? [];
      if (unit !== undefined) {
        const ms = Math.round(Number(number) * UNITS_MS[unit]!);
        if (ms <= mostMs) return ms;
        throw new UsageError(`--${option} may be at most ${formatDuration(mostMs)}, not ${given}.`);
      }
      throw new UsageError(
        `--${option} must be a duration such as 500ms, 30s, 10m, 2h or 1d, not ${JSON.stringify(given)}.`,
      );
    },
  };
}

/** The same option, which means forever without a value. */
export function orForever(option: ValueOption<number>): ValueOption<number> {
  return {
    ...option,
    isValueOptional: true,
    read: (given, name) => (given === '' ? Infinity : option.read(given, name)),
  };
}
