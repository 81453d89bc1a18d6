import type { LatchSpec } from '../store/latch-store.js';
import { checkResource, MAX_RESOURCE_BYTES } from '../api/resource.js';
import {
  abortSignal,
  checked,
  checkInteger,
  milliseconds,
  type OptionsOf,
  OptionTable,
  patience,
  wrongValue,
} from '../api/validation.js';

/** How a latch is made. */
export interface LatchOptions {
  /**
   * How long the latch lives in Redis from its creation. The first call that counts down or waits creates it, and its
   * value counts.
   *
   * @allowed 1 s to 720 h
   * @default 86400000
   */
  ttlMs?: number;
}

export interface CountDownOptions {
  /**
   * What is counted. One id counts once for a latch, whichever process sends it, so a job that runs again may count
   * again.
   *
   * @allowed a non-empty string of at most 512 bytes
   * @default a new one for each call
   */
  id?: string;
}

export interface LatchWaitOptions {
  /**
   * How long to wait. With 0, the call only looks, and does not create the latch. With `Infinity`, it never gives up.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default that of the module
   */
  waitMs?: number;
  /** Ends the wait with `LockAbortedError` when it aborts. @default none */
  signal?: AbortSignal;
}

/**
 * Opens when it has been counted down `count` times, by any processes, and stays open until its TTL is over.
 *
 * @see CountDownLatch of java.util.concurrent, the model of this one
 */
export interface CountdownLatch {
  readonly name: string;
  readonly count: number;
  /**
   * Counts down by one, and resolves to how many count-downs are missing. A call counts once, however often its command is
   * executed. Counting down an open latch changes nothing. While Redis cannot be reached, the call tries again for
   * `unavailableMs` and `waitMs` of the module.
   *
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached within `unavailableMs` and `waitMs` of the module, or
   * refuses. The call may have counted: to try again, pass the same `id`
   * @throws LockShutdownError when the same happens while the application shuts down
   * @throws InvalidLockOptionsError when an option cannot be right; nothing was sent
   */
  countDown(options?: CountDownOptions): Promise<number>;
  /**
   * Resolves when the latch is open; at once when it is open already.
   *
   * @throws LockTimeoutError when it is not open after `waitMs`
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached within `waitMs`, or `unavailableMs` of the module, or
   * refuses
   * @throws LockAbortedError when `signal` aborts
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option cannot be right; nothing was sent
   */
  wait(options?: LatchWaitOptions): Promise<void>;
  /**
   * How many count-downs are missing now; 0 means open. For a latch that was never used, that is `count`, and the call does not
   * create it.
   *
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  remaining(): Promise<number>;
}

const MAX_COUNT = 1_000_000;
const HOUR_MS = 60 * 60 * 1000;

export const LATCH_OPTIONS = new OptionTable({
  ttlMs: milliseconds(1_000, 30 * 24 * HOUR_MS).default(24 * HOUR_MS),
} satisfies OptionsOf<LatchOptions>);

export const COUNT_DOWN_OPTIONS = new OptionTable({
  id: checked<string>(checkId),
} satisfies OptionsOf<CountDownOptions>);

export const LATCH_WAIT_OPTIONS = new OptionTable({
  waitMs: patience(),
  signal: abortSignal(),
} satisfies OptionsOf<LatchWaitOptions>);

export function checkLatch(name: unknown, count: unknown, options: LatchOptions = {}): LatchSpec {
  const checkedName = checkResource(name, 'latch');
  checkInteger('count', count, 1, MAX_COUNT, 'count-downs');
  LATCH_OPTIONS.check('The options of latch', options);
  return { name: checkedName, count: count as number, ttlMs: options.ttlMs ?? LATCH_OPTIONS.defaults.ttlMs };
}

function checkId(option: string, id: unknown): void {
  const isUsable =
    typeof id === 'string' && id !== '' && Buffer.byteLength(id) <= MAX_RESOURCE_BYTES && id.isWellFormed();
  if (isUsable) return;
  throw wrongValue(option, `a non-empty, well-formed string of at most ${MAX_RESOURCE_BYTES} bytes`, id);
}
