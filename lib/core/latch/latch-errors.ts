import { LockModeMismatchError, LockTimeoutError, quoteResource } from '../api/errors.js';
import { NO_HOLDERS } from '../api/holder.js';
import { formatDuration } from '../util/durations.js';
import type { LatchState, LatchSpec } from '../store/latch-store.js';

/** The latch is in use with another count than the caller states. */
export function otherCount({ name, count }: LatchSpec, state: LatchState): LockModeMismatchError {
  return new LockModeMismatchError(
    `The latch ${quoteResource(name)} already exists with count ${state.count}, not ${count}. Nothing was changed. State the same ` +
      `count everywhere, use another name, or wait until the latch expires (in ${formatDuration(state.ttlMs)}).`,
    name,
  );
}

/** `waitMs` is over, and the latch is not open. */
export function notOpened(
  { name, count }: LatchSpec,
  remaining: number,
  waitedMs: number,
  attempts: number,
  ttlMs: number,
): LockTimeoutError {
  return new LockTimeoutError(
    name,
    waitedMs,
    attempts,
    ttlMs,
    NO_HOLDERS,
    `The latch ${quoteResource(name)} did not open within ${formatDuration(waitedMs)}: ${remaining} of ${count} ` +
      `count-downs ${remaining === 1 ? 'is' : 'are'} missing. Raise waitMs, or find out which process has not counted down.`,
  );
}
