import type { Clock, Timer } from '../../core/util/clock.js';
import { type Random, SystemRandom } from '../../core/util/random.js';

const NO_TIMER: Timer = { cancel() {} };

/**
 * Time stands still for leases and waits, so no lease ends and no timer keeps the process alive. What is due at once
 * is called at once. The date is that of the process, or of its fake timers.
 */
export const STANDING_CLOCK: Clock = {
  now: () => 0,
  wallNow: () => Date.now(),
  setTimer(callback, delayMs) {
    if (delayMs <= 0) void soon(callback);
    return NO_TIMER;
  },
};

/** Not by `queueMicrotask`, which the fake timers of a test replace. */
async function soon(callback: () => void): Promise<void> {
  await Promise.resolve();
  callback();
}

const system = new SystemRandom();

/** No call waits for a random part of a time. */
export const NO_CHANCE: Random = { id: () => system.id(), fraction: () => 0 };
