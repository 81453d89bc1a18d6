import { type AttemptOutcome, InvalidLockOptionsError } from './errors.js';
import {
  checked,
  countOrInfinity,
  describeValue,
  flag,
  milliseconds,
  type OptionsOf,
  OptionTable,
  wrongValue,
} from './validation.js';

/** What a {@link RetryStrategy} knows when it is asked for the next pause. */
export interface RetryState {
  /** How many attempts were made; 1 after the first. */
  readonly attempt: number;
  /** Milliseconds since the call began. */
  readonly elapsedMs: number;
  /** What the last attempt came to. */
  readonly lastAttempt: AttemptOutcome;
  /** When the holder's lease ends unless it is renewed, in milliseconds; 0 where Redis did not say. */
  readonly holderTtlMs: number;
  /** A random number from 0 up to 1, for jitter. */
  random(): number;
}

/** Polls in place of queueing: for those who want to decide themselves when Redis is asked again. */
export interface RetryStrategy {
  /** Milliseconds until the next attempt, or `null` to give up. Whatever it says, `waitMs` ends the wait too. */
  next(state: RetryState): number | null;
}

const MAX_PAUSE_MS = 24 * 60 * 60 * 1000;

const pauseMs = milliseconds(1, MAX_PAUSE_MS);
const maxAttempts = countOrInfinity(1, 'attempts').default(Infinity);

export const FIXED_INTERVAL_OPTIONS = new OptionTable({
  intervalMs: pauseMs.required(),
  maxAttempts,
} satisfies OptionsOf<Parameters<typeof fixedInterval>[0]>);

export const BACKOFF_OPTIONS = new OptionTable({
  initialMs: pauseMs.default(25),
  maxMs: pauseMs.default(2_000),
  factor: checked<number>(checkFactor).default(2),
  jitter: flag().default(true),
  maxAttempts,
} satisfies OptionsOf<NonNullable<Parameters<typeof exponentialBackoff>[0]>>);

/**
 * Asks again every `intervalMs`.
 *
 * @throws InvalidLockOptionsError when an option is out of range
 */
export function fixedInterval(options: {
  /** The pause between attempts. @allowed 1 ms to 24 h */
  intervalMs: number;
  /**
   * How many attempts to make in total before failing with `LockBusyError`.
   *
   * @allowed 1 and more
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
 * that, at least 1 ms, so that many waiters do not ask in step.
 *
 * @see https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 * @throws InvalidLockOptionsError when an option is out of range
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
     * How many attempts to make in total before failing with `LockBusyError`.
     *
     * @allowed 1 and more
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

/** Checks what a user's own strategy answered. */
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
