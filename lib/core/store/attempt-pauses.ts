import type { AttemptLog } from './attempts.js';
import type { Random } from '../util/random.js';

/** A waiter asks again at least this often: it keeps its place alive, and finds a grant whose message was lost. */
export const HEARTBEAT_MS = 1_000;
/** First and longest pause after an attempt that Redis did not answer. */
const FAILURE_PAUSE_MS = { first: 20, longest: 500 };

/** Up to a quarter longer, so that many who fell silent together do not ask together. */
function jitter(random: Random): number {
  return 1 + random.fraction() / 4;
}

/**
 * How long a contender in the queue waits to be told before it asks again: until its place has to be renewed, or the
 * holder's lease should be over.
 */
export function heartbeatPause(holderTtlMs: number, leaseMs: number, random: Random): number {
  return Math.min(HEARTBEAT_MS, leaseMs / 3, holderTtlMs + 1) * jitter(random);
}

/** The pause after one or more attempts that were not answered. */
export function failurePause({ failures }: AttemptLog, random: Random): number {
  const doubled = FAILURE_PAUSE_MS.first * 2 ** Math.min(failures - 1, 10);
  return Math.min(FAILURE_PAUSE_MS.longest, doubled) * jitter(random);
}
