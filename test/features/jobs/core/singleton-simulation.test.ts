import { simulateCron } from '../../../../tools/chaos/cron/simulation/simulate-cron.js';
import type { SimulatedJob } from '../../../../tools/chaos/cron/simulation/simulated-job.js';
import { runs } from '../../../support/simulation/runs.js';

// The same simulation runs with many more ticks in tools/chaos/cron.
const TICKS = 20;
const WORLDS = Array.from({ length: runs(20, 10) }, (_, seed) => seed + 1);

/** overlap: 'wait', because then no tick may be missing, however the runs fall. */
function job(onCrash: 'skip' | 'retry'): SimulatedJob {
  return { name: 'report', everySeconds: 10, overlap: 'wait', onCrash, isJudged: true };
}

describe.each(['skip', 'retry'] as const)('a fleet with skewed clocks on a bad network (onCrash: %s)', (onCrash) => {
  it.each(WORLDS)('starts every tick once, one after another: world %d', async (seed) => {
    const result = await simulateCron({ ticks: TICKS, seed, jobs: [job(onCrash)], incidents: false });
    expect(result.violations).toEqual([]);
    expect(result.ticks).toBeGreaterThanOrEqual(TICKS);
    // A network this bad may cost a runner its lease: to the others that is as good as a crash.
    // At first the clock that is furthest ahead outruns the others.
    expect(result.starts + result.outrun).toBeGreaterThanOrEqual(result.ticks);
    expect(result.starts - result.reruns).toBeLessThanOrEqual(result.ticks);
    if (onCrash === 'skip') expect(result.starts + result.outrun).toBe(result.ticks);
  });
});

describe("a fleet whose processes are killed and replaced (onCrash: 'retry')", () => {
  it.each(WORLDS)('misses no tick, and runs one again only if its runner died: world %d', async (seed) => {
    const result = await simulateCron({ ticks: 3 * TICKS, seed, jobs: [job('retry')] });
    expect(result.violations).toEqual([]);
    expect(result.kills).toBeGreaterThan(0);
  });
});
