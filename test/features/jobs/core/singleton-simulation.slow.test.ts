import { simulateJobs } from '../../../../tools/chaos/cron/jobs/simulate-jobs.js';
import { RETRIED_JOBS, RETURNED_JOBS } from '../../../../tools/chaos/cron/jobs/simulated-record.js';
import { runs } from '../../../support/simulation/runs.js';

// The same simulation runs for longer, and with broken stores, in tools/chaos/cron.
const WORLDS = Array.from({ length: runs(4, 10) }, (_, seed) => seed + 1);
const JOBS = { RETRIED_JOBS, RETURNED_JOBS };

describe.each(Object.entries(JOBS))('a fleet with skewed clocks on a bad network, with %s', (_, jobs) => {
  it.each(WORLDS)('starts every tick once, and one of a dead process again: world %d', async (seed) => {
    const { violations, counts } = await simulateJobs({ seed, jobs, upMs: 60_000, calmMs: 10_000 });
    expect(violations).toEqual([]);
    expect(counts['starts']).toBeGreaterThan(0);
  });
});
