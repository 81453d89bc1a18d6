import { runContended, waitMetrics } from './contended.mjs';
import { toContestant } from './ratios.mjs';
import { semaphoreContestants } from './semaphore-contestants.mjs';

export const scenario = {
  name: 'semaphore-3',
  title: 'A semaphore with three permits, 32 callers',
  meaning: 'How fast permits that all callers want go round, and how long the unluckiest caller waits for one.',
  how:
    'Four processes with eight callers each want one of three permits of the same semaphore for 3 s: acquire, release, and again, ' +
    'with nothing to do under it. Only packages with semaphores. Checked by time stamps: never more than three at once.',
  metrics: waitMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [
    { metric: 'leasesPerSecond', better: 'more' },
    { metric: 'longestWaitMs', better: 'less' },
  ],
  targets: [
    { text: 'leases/s, of redis-semaphore', of: toContestant('redis-semaphore', 'leasesPerSecond'), atLeast: 5 },
  ],
  run: (bench) => runContended(bench, 'semaphore-3', { sectionMs: 0, permits: 3 }, semaphoreContestants(bench)),
};
