import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import {
  fillLockOptions,
  LOCK_OPTIONS,
  type LockOptions,
  type OnLost,
  type ResolvedDefaults,
  type ResolvedLockOptions,
} from '../../../kernel/api/lock-options.js';
import { Option, type OptionsOf, OptionTable, pick } from '../../../kernel/api/validation.js';

const MAX_TTL_MS = 365 * 24 * 60 * 60 * 1_000;
/** What Redis stores in one value at most is 512 MB. A value of that size would block it for seconds. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Options of `locks.once()`. `T` is the result of the work. */
export interface OnceOptions<T = unknown> extends Pick<
  LockOptions,
  'waitMs' | 'leaseMs' | 'maxHoldMs' | 'attemptTimeoutMs' | 'onLost' | 'signal' | 'group' | 'label' | 'warnAfterMs'
> {
  /**
   * How long Redis stores the result for later calls, counted from the end of the work.
   *
   * @allowed 1 ms to 365 days
   */
  resultTtlMs: number;
  /**
   * Time to wait for another call that does the work. With 0, your call then fails at once with `LockBusyError`.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default 18000
   */
  waitMs?: number;
  /**
   * The maximum size of the serialized result. A larger result is not stored, only returned to its caller and to
   * waiting calls in the same process; the log reports that once.
   *
   * @allowed 1 to 16777216 bytes
   * @default 65536
   */
  maxBytes?: number;
  /**
   * Converts the result to the stored text. Set `parse` too. Not called for a result of `undefined`.
   *
   * @allowed a function that returns a string
   * @default `JSON.stringify`
   */
  serialize?: (result: T) => string;
  /**
   * Converts the stored text back to the result, for each call that gets it. If `parse` throws, the work runs again.
   *
   * @allowed a function
   * @default `JSON.parse`
   */
  parse?: (text: string) => T;
}

/** The options of `once` that are those of a lock, with their checks. */
const OF_LOCK = pick(
  LOCK_OPTIONS.options,
  'waitMs',
  'leaseMs',
  'maxHoldMs',
  'attemptTimeoutMs',
  'onLost',
  'signal',
  'group',
  'label',
  'warnAfterMs',
);

/** @internal The compiler would describe its type by importing the entry point, and so Nest. */
export const ONCE_OPTIONS = new OptionTable({
  ...OF_LOCK,
  resultTtlMs: Option.milliseconds(1, MAX_TTL_MS).required(),
  maxBytes: Option.atLeast(1, 'bytes', MAX_BYTES).default(64 * 1024),
  serialize: Option.callback<(result: never) => string>(),
  parse: Option.callback<(text: string) => never>(),
} satisfies OptionsOf<OnceOptions<never>>);

/** The options of one call, with the defaults filled in. */
export interface ResolvedOnce {
  readonly lock: ResolvedLockOptions;
  readonly onLost: OnLost;
  readonly resultTtlMs: number;
  readonly maxBytes: number;
  readonly serialize: (result: unknown) => string;
  readonly parse: (text: string) => unknown;
}

/** @throws InvalidLockOptionsError if an option is invalid, or one of `serialize` and `parse` is missing */
export function checkOnceOptions(where: string, options: OnceOptions): void {
  ONCE_OPTIONS.check(where, options);
  checkFormat(where, options);
}

/** @throws InvalidLockOptionsError if one of `serialize` and `parse` is missing */
export function checkFormat(where: string, { serialize, parse }: Pick<OnceOptions, 'serialize' | 'parse'>): void {
  if ((serialize === undefined) === (parse === undefined)) return;
  const [missing, given] = serialize === undefined ? ['serialize', 'parse'] : ['parse', 'serialize'];
  throw new InvalidLockOptionsError(
    `${where}: set both serialize and parse, or neither. With ${given} alone, ${missing} would be the default (JSON), ` +
      'which does not match it.',
    missing,
  );
}

/** Fills in the defaults of checked options. */
export function fillOnceOptions(options: OnceOptions, defaults: ResolvedDefaults): ResolvedOnce {
  const {
    resultTtlMs,
    maxBytes = ONCE_OPTIONS.defaults.maxBytes,
    serialize = JSON.stringify,
    parse = JSON.parse,
    onLost = ONCE_OPTIONS.defaults.onLost,
    ...lock
  } = options;
  const { watchdog, backgroundRelease } = FOR_RESULTS;
  return {
    lock: { ...fillLockOptions(lock, defaults), watchdog, backgroundRelease },
    onLost,
    resultTtlMs,
    maxBytes,
    serialize,
    parse,
  };
}

/** A call resolves when its result is stored. The lease lasts as long as the work. */
const FOR_RESULTS = { watchdog: true, backgroundRelease: false } as const;
