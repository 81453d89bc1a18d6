/** `npm run test:long` tries at least four times as much as CI and `npm run test:all`; `npm test` and `npm run check` try less. */
const TIMES = { long: 4, test: 1 / 4, check: 1 / 10 }[process.env['TEST_SPEED'] ?? ''] ?? 1;

/**
 * The number of plans, seeds or histories to try. `RUNS=<number>` replaces it.
 *
 * @param count a quarter of the number in `npm run test:long`
 * @param inAll the number in CI and `npm run test:all`: lower if the first ones find nearly as much
 */
export function runs(count: number, inAll = count): number {
  const told = process.env['RUNS'];
  if (told !== undefined) return Number(told);
  return TIMES === 1 ? inAll : Math.ceil(count * TIMES);
}

/** For this long fast-check tries plans, and then looks for the smallest one that fails. */
export const PATIENCE_MS = 25_000 * Math.max(1, TIMES);
