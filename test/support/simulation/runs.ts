/** `npm run test:long` tries four times as much. */
const TIMES = process.env['TEST_SPEED'] === 'long' ? 4 : 1;

/**
 * How many plans, seeds or histories to try.
 * @param count how many there are in `npm test`; `RUNS=<number>` replaces it
 */
export function runs(count: number): number {
  const told = process.env['RUNS'];
  return told === undefined ? count * TIMES : Number(told);
}

/** For this long fast-check tries plans, and then looks for the smallest one that fails. */
export const PATIENCE_MS = 25_000 * TIMES;
