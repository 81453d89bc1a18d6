import { SystemClock } from '../../../kernel/util/clock.js';
import { pause } from '../../../kernel/util/promises.js';

const CLOCK = new SystemClock();

/** Waits. Ends early, without an error, when the signal aborts. */
export async function pauseFor(ms: number, signal?: AbortSignal): Promise<void> {
  await pause(CLOCK, ms, signal);
}
