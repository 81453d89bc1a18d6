import { chosen } from '../mutants/chosen.mjs';
import { CRON_MUTANTS } from '../mutants/cron-mutants.mjs';
import { replacedBy } from '../mutants/replaced-by.js';
import { scriptsText } from '../report/longest-script-row.js';
import { runCron } from './run-cron.js';
import { repeatWith, report, SEED } from './seed.js';

const SECONDS = 8;
/** A few seconds are enough, but it is given more: on a busy machine few processes claim the same tick at the same time. */
const MUTANT = { seconds: 80, workers: 3, untilFoundOut: true };
const PATIENCE_MS = 120_000;

describe(`processes that fire jobs on Redis, with wrong clocks, suspended, killed and cut off (${repeatWith})`, () => {
  it('start each tick once, and miss none', async () => {
    const { violations, longestScripts, ...counts } = await runCron({ seconds: SECONDS, seed: SEED });
    report('cron on Redis', { ...counts, longestScripts: scriptsText(longestScripts) });
    expect({ repeatWith, violations: violations.slice(0, 10) }).toEqual({ repeatWith, violations: [] });
    expect(counts.starts).toBeGreaterThan(20 * SECONDS);
    expect(counts.kills + counts.pauses + counts.connectionKills!).toBeGreaterThan(SECONDS);
  });
});

for (const mutant of chosen(CRON_MUTANTS)) {
  it(
    `a broken variant of the library is found out: ${mutant.name}: ${mutant.what}`,
    async () => {
      const { violations } = await runCron({ ...MUTANT, seed: SEED, replaced: replacedBy(mutant) });
      const rules = new Set(violations.map(({ rule }) => rule));
      expect([...rules]).toEqual(
        expect.arrayContaining([expect.stringMatching(/^(duplicate|overlap|rerun of a whole run)$/)]),
      );
    },
    PATIENCE_MS,
  );
}
