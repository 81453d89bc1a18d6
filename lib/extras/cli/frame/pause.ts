import { SYSTEM_CLOCK } from '../../../kernel/util/clock.js';
import { pause } from '../../../kernel/util/promises.js';

/** Waits. Ends early, without an error, when the signal aborts. */
export async function pauseFor(ms: number, signal?: AbortSignal): Promise<void> {
  await pause(SYSTEM_CLOCK, ms, signal);
}
