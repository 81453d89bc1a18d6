import type { CronSimulationOptions } from './cron-simulation.js';
import { simulateCron } from './simulate-cron.js';
import type { CronResult } from '../cron-result.js';
import { brokenLedgers, LONG_PAUSES, unjudged } from './broken-tick-stores.js';
import { repeatWith, report, SEED } from '../seed.js';

/** The long form has 100,000: `npm run chaos`. */
const TICKS = 5_000;

async function run(options: Partial<CronSimulationOptions> = {}): Promise<CronResult> {
  return simulateCron({ ticks: TICKS, seed: SEED, ...options });
}

describe(`a simulated fleet with wrong clocks, pauses and kills (${repeatWith})`, () => {
  it(`starts each of ${TICKS} ticks once, and misses none`, async () => {
    const { violations, ...counts } = await run();
    report('simulated cron', counts);
    expect({ repeatWith, violations: violations.slice(0, 10) }).toEqual({ repeatWith, violations: [] });
    // It has seen what it is to prove something about.
    // So many are due in the time that is simulated, on average.
    expect(counts.ticks).toBeGreaterThanOrEqual(0.95 * TICKS);
    for (const count of ['kills', 'clockSteps', 'reruns', 'dropped'] as const) {
      expect([count, counts[count]! >= 5]).toEqual([count, true]);
    }
    expect(counts.pauses + counts.suspends!).toBeGreaterThanOrEqual(20);
  });

  it('starts each tick once where processes stand still, and machines are suspended, for longer than a claim is kept', async () => {
    const { violations, ...counts } = await run(LONG_PAUSES);
    report('simulated cron, long pauses', counts);
    expect({ repeatWith, violations: violations.slice(0, 10) }).toEqual({ repeatWith, violations: [] });
    for (const count of ['pauses', 'suspends', 'late'] as const) {
      expect([count, counts[count]! > 0]).toEqual([count, true]);
    }
  });

  it('needs no judgement of ticks where no pause is as long as that: it is these pauses that find its lack', async () => {
    const { violations } = await run({ ...LONG_PAUSES, seed: 1, longestPauseMs: 9_000, breakLedger: unjudged });
    expect(violations).toEqual([]);
  });

  it('does the same again with the same seed', async () => {
    const [one, other] = [await run({ ticks: 300, seed: 5 }), await run({ ticks: 300, seed: 5 })];
    expect({ ...one, tookMs: 0 }).toEqual({ ...other, tookMs: 0 });
    expect((await run({ ticks: 300, seed: 6 })).fires).not.toBe(one.fires);
  });
});

describe('a simulated fleet whose claims are broken is found out', () => {
  it.each(Object.entries(brokenLedgers))('%s', async (_, { rule, breakLedger, options }) => {
    const { violations } = await run({ ticks: 600, seed: 1, breakLedger, ...options });
    expect(violations.map((violation) => violation.rule)).toContain(rule);
  });
});
