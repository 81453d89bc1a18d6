import { type AttemptOutcome, InvalidLockOptionsError } from './errors.js';
import { describeValue, Option, type OptionsOf, OptionTable, wrongValue } from './validation.js';

/** The facts from which a {@link RetryStrategy} chooses the next pause. */
export interface RetryState {
  /** The number of attempts so far; 1 after the first. */
  readonly attempt: number;
  /** Milliseconds since the call began. */
  readonly elapsedMs: number;
  readonly lastAttempt: AttemptOutcome;
  /** Milliseconds until the holder's lease ends unless it is renewed; 0 if Redis did not report it. */
  readonly holderTtlMs: number;
  /** Returns a random number from 0 up to 1, for jitter. */
  random(): number;
}

/** Polls instead of waiting in the queue: you decide when to try again. */
export interface RetryStrategy {
  /** Returns the milliseconds until the next attempt, or `null` to give up. `waitMs` still limits the wait. */
  next(state: RetryState): number | null;
}

const MAX_PAUSE_MS = 24 * 60 * 60 * 1000;

const pauseMs = Option.milliseconds(1, MAX_PAUSE_MS);
const maxAttempts = Option.countOrInfinity(1, 'attempts').default(Infinity);

export const FIXED_INTERVAL_OPTIONS = new OptionTable({
  intervalMs: pauseMs.required(),
  maxAttempts,
} satisfies OptionsOf<Parameters<typeof fixedInterval>[0]>);

export const BACKOFF_OPTIONS = new OptionTable({
  initialMs: pauseMs.default(25),
  maxMs: pauseMs.default(2_000),
  factor: Option.checked<number>(checkFactor).default(2),
  jitter: Option.flag().default(true),
  maxAttempts,
} satisfies OptionsOf<NonNullable<Parameters<typeof exponentialBackoff>[0]>>);

/**
 * Retries every `intervalMs`.
 *
 * @throws InvalidLockOptionsError if an option is out of range
 */
export function fixedInterval(options: {
  /** The pause between attempts. @allowed 1 ms to 24 h */
  intervalMs: number;
  /**
   * The maximum number of attempts before failing with `LockBusyError`.
   *
   * @allowed 1 or more
   * @default Infinity
   */
  maxAttempts?: number;
}): RetryStrategy {
  FIXED_INTERVAL_OPTIONS.check('fixedInterval', options, 'fixedInterval.');
  const { intervalMs, maxAttempts = FIXED_INTERVAL_OPTIONS.defaults.maxAttempts } = options;
  return { next: ({ attempt }) => (attempt >= maxAttempts ? null : intervalMs) };
}

/**
 * Doubles the pause (or multiplies it by `factor`) up to `maxMs`, with full jitter: each pause is a random part of
 * that, at least 1 ms, so that callers do not retry in lockstep.
 *
 * @see https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 * @throws InvalidLockOptionsError if an option is out of range
 */
export function exponentialBackoff(
  options: {
    /**
     * The first pause, before jitter.
     *
     * @allowed 1 ms to 24 h
     * @default 25
     */
    initialMs?: number;
    /**
     * The longest pause, before jitter.
     *
     * @allowed 1 ms to 24 h
     * @default 2000
     */
    maxMs?: number;
    /**
     * Multiplies the pause after each attempt.
     *
     * @allowed 1 to 10
     * @default 2
     */
    factor?: number;
    /**
     * `true` picks a random part of each pause, so that callers spread out.
     *
     * @default true
     */
    jitter?: boolean;
    /**
     * The maximum number of attempts before failing with `LockBusyError`.
     *
     * @allowed 1 or more
     * @default Infinity
     */
    maxAttempts?: number;
  } = {},
): RetryStrategy {
  BACKOFF_OPTIONS.check('exponentialBackoff', options, 'exponentialBackoff.');
  const defaults = BACKOFF_OPTIONS.defaults;
  const { initialMs = defaults.initialMs, maxMs = defaults.maxMs, factor = defaults.factor } = options;
  const { jitter = defaults.jitter, maxAttempts = defaults.maxAttempts } = options;
  return {
    next({ attempt, random }) {
      if (attempt >= maxAttempts) return null;
      const ceiling = Math.min(maxMs, initialMs * factor ** (attempt - 1));
      return jitter ? Math.max(1, ceiling * random()) : ceiling;
    },
  };
}

/** Checks the return value of a user's own strategy. */
export function checkPause(pauseMs: unknown): number | null {
  if (pauseMs === null) return null;
  if (typeof pauseMs === 'number' && pauseMs >= 0 && pauseMs <= MAX_PAUSE_MS) return pauseMs;
  throw new InvalidLockOptionsError(
    `retry.next() must return milliseconds from 0 to ${MAX_PAUSE_MS}, or null to give up, not ${describeValue(pauseMs)}.`,
    'retry',
  );
}

function checkFactor(option: string, factor: unknown): void {
  if (typeof factor === 'number' && factor >= 1 && factor <= 10) return;
  throw wrongValue(option, 'a number from 1 to 10', factor);
}
