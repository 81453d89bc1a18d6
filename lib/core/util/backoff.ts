import type { Random } from './random.js';

/** The shortest and the longest pause between two tries, in milliseconds. */
interface PauseRange {
  readonly first: number;
  readonly longest: number;
}

/**
 * How long to wait before the next try: twice as long after each failure in a row.
 *
 * @param failures 1 after the first failure
 * @returns milliseconds within the range
 */
export function backoff({ first, longest }: PauseRange, failures: number): number {
  return Math.min(longest, first * 2 ** Math.min(failures - 1, 10));
}

/**
 * Spreads out many callers that wait for the same thing.
 *
 * @returns a factor from 1 up to 1.25
 */
export function jitter(random: Pick<Random, 'fraction'>): number {
  return 1 + random.fraction() / 4;
}
