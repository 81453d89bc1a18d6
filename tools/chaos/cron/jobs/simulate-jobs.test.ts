import { runs } from '../../../../test/support/simulation/runs.js';
import { repeatWith, report, SEED } from '../seed.js';
import { brokenJobStores } from './broken-job-stores.js';
import { NIGHTS, RETURNED_JOBS } from './simulated-record.js';
import { type JobsResult, simulateJobs } from './simulate-jobs.js';

const MINUTE_MS = 60_000;
const IS_LONG = process.env['TEST_SPEED'] === 'long';
/** The long form has 400,000: `npm run chaos`. */
const TICKS = 20_000;
/** `npm run test:long` tries worlds of its own. */
const FIRST = IS_LONG || process.env['CHAOS_SEED'] !== undefined ? SEED : 1;
/** For a machine on which a world takes ten seconds. */
const PATIENCE_MS = 600_000;
/** So many worlds find out each store that is broken, and have what is rare. */
const WORLDS = 20;
/** A world of few ticks that has all that is rare. */
const RARE = FIRST === 1 ? 16 : FIRST;

/** Adds up what several worlds have seen. */
function sumOf(results: readonly JobsResult[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const { counts } of results) {
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

describe(`a simulated fleet whose jobs are remembered (${repeatWith})`, () => {
  it('has the history that a witness at the store has, tells each missed tick once, and makes up for it once', async () => {
    const results: JobsResult[] = [];
    for (let seed = FIRST; seed < FIRST + runs(2); seed++) {
      const { counts, violations } = await simulateJobs({ seed, upMs: 15 * MINUTE_MS, calmMs: 15_000 });
      expect({ seed, violations: violations.slice(0, 10) }).toEqual({ seed, violations: [] });
      results.push({ counts, violations });
    }
    const counts = sumOf(results);
    report('simulated jobs', { ...counts, seed: FIRST });
    // They have seen what they are to prove something about.
    for (const count of ['granted', 'told', 'ok', 'failed', 'catchUps', 'kills', 'gaps'] as const) {
      expect([count, counts[count]! > 0]).toEqual([count, true]);
    }
  });

  it('gives a tick back to all instances that was not begun at a shutdown, or was granted too late', async () => {
    const results: JobsResult[] = [];
    // The last two are rare: one world may not have them, and a few do.
    const wanted = ['shutdowns', 'returned', 'returnedRuns', 'takenBack'];
    const isSeen = (name: string): boolean => (sumOf(results)[name] ?? 0) > 0;
    const least = IS_LONG ? WORLDS : 1;
    for (let seed = RARE; seed < RARE + WORLDS && !(results.length >= least && wanted.every(isSeen)); seed++) {
      const world = { jobs: RETURNED_JOBS, upMs: 5 * MINUTE_MS, calmMs: 2_000 };
      const { counts, violations } = await simulateJobs({ seed, ...world });
      expect({ seed, violations: violations.slice(0, 10) }).toEqual({ seed, violations: [] });
      results.push({ counts, violations });
    }
    report('simulated jobs, given back', { ...sumOf(results), seed: RARE });
    expect(wanted.filter((name) => !isSeen(name))).toEqual([]);
  });

  it(`is right about ${TICKS} ticks, most of them missed in nights off`, async () => {
    const { counts, violations } = await simulateJobs({ seed: FIRST, ...NIGHTS, ticks: TICKS });
    report('simulated jobs, nights off', counts);
    expect({ violations: violations.slice(0, 10) }).toEqual({ violations: [] });
    expect(counts['ticks']).toBeGreaterThanOrEqual(TICKS);
  });
});

describe('a simulated fleet whose store is broken is found out', () => {
  it.each(Object.entries(brokenJobStores))(
    '%s',
    async (_, { rule, options, first = 1, ...broken }) => {
      const found = new Set<string>();
      for (let seed = first; seed < first + WORLDS && !found.has(rule); seed++) {
        const world = { seed, upMs: 30 * MINUTE_MS, calmMs: 15_000, endsEarly: true };
        const { violations } = await simulateJobs({ ...world, ...broken, ...options, seed });
        for (const violation of violations) found.add(violation.rule);
      }
      expect([...found]).toContain(rule);
    },
    PATIENCE_MS,
  );
});
