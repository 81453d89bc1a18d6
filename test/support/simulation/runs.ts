/** `npm run test:long` tries four times as much as CI and `npm run test:all`; `npm test` a quarter, `npm run check` a tenth. */
const TIMES = { long: 4, test: 1 / 4, check: 1 / 10 }[process.env['TEST_SPEED'] ?? ''] ?? 1;

/**
 * How many plans, seeds or histories to try.
 * @param count how many there are in CI; `RUNS=<number>` replaces it
 */
export function runs(count: number): number {
  const told = process.env['RUNS'];
  return told === undefined ? Math.ceil(count * TIMES) : Number(told);
}

/** For this long fast-check tries plans, and then looks for the smallest one that fails. */
export const PATIENCE_MS = 25_000 * Math.max(1, TIMES);
