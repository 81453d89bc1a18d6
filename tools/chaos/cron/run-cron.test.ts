import { CRON_MUTANTS } from '../mutants/cron-mutants.mjs';
import { replacedBy } from '../mutants/replaced-by.js';
import { inLanes } from '../run/lanes.js';
import { prepareCronWorkers } from './cron-fleet.js';
import type { CronResult } from './cron-result.js';
import { runCron } from './run-cron.js';
import { repeatWith, report, SEED } from './seed.js';

const SECONDS = 8;
/** A few seconds are enough, but it is given more: on a busy machine few processes claim the same tick at the same time. */
const MUTANT = { seconds: 80, workers: 3, untilFoundOut: true };
const PATIENCE_MS = 120_000;
const MUTANTS_AT_ONCE = 3;

describe(`processes that fire jobs on Redis, with wrong clocks, suspended, killed and cut off (${repeatWith})`, () => {
  it('start each tick once, and miss none', async () => {
    const { violations, ...counts } = await runCron({ seconds: SECONDS, seed: SEED });
    report('cron on Redis', counts);
    expect({ repeatWith, violations: violations.slice(0, 10) }).toEqual({ repeatWith, violations: [] });
    expect(counts.starts).toBeGreaterThan(20 * SECONDS);
    expect(counts.kills + counts.pauses + counts.connectionKills).toBeGreaterThan(SECONDS);
  });
});

describe('a broken variant of the library is found out', () => {
  const mutants = CRON_MUTANTS;
  let found: readonly CronResult[];

  // Each fleet mostly waits: for its ticks, and until it is certain of what looks wrong.
  beforeAll(async () => {
    prepareCronWorkers(mutants.map(replacedBy));
    found = await inLanes(
      MUTANTS_AT_ONCE,
      mutants.map((mutant) => () => runCron({ ...MUTANT, seed: SEED, replaced: replacedBy(mutant) })),
    );
  }, mutants.length * PATIENCE_MS);

  for (const [index, { name, what }] of mutants.entries()) {
    it(`${name}: ${what}`, () => {
      const rules = new Set(found[index]!.violations.map(({ rule }) => rule));
      expect([...rules]).toEqual(
        expect.arrayContaining([expect.stringMatching(/^(duplicate|overlap|rerun of a whole run|token order)$/)]),
      );
    });
  }
});
