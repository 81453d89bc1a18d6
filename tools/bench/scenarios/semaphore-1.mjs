import { semaphoreContestants } from './semaphore-contestants.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'semaphore-1',
  title: 'A free semaphore, one caller after the other',
  meaning: 'What a permit costs when no other caller wants one. For information.',
  how:
    'One process, one caller, one semaphore with three permits that no other caller uses; acquire, release, and again, in five slices of ' +
    '200 ms in each round. Our permit carries a fencing token and is renewed.',
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [{ metric: 'leasesPerSecond', better: 'more' }],
  targets: [],
  run: (bench) => runThroughput(bench, 'semaphore-1', { callers: 1, permits: 3 }, semaphoreContestants(bench)),
};
