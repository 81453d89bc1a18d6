import { runContended, waitMetrics } from './contended.mjs';
import { toContestant } from './ratios.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

/** Those whose clients have `semaphore(permits)`. */
const contestantsOf = (bench) => bench.contestants('ours', 'peer').filter(({ hasSemaphore }) => hasSemaphore);

export const semaphores = [
  {
    name: 'semaphore-1',
    title: 'A free semaphore, one caller after the other',
    how:
      'One process, one caller, one semaphore with three permits that no other caller uses; acquire, release, and again, in five ' +
      'slices of 200 ms in each round. Our permit carries a fencing token and is renewed. For information.',
    metrics: throughputMetrics,
    targets: [],
    run: (bench) => runThroughput(bench, 'semaphore-1', { callers: 1, permits: 3 }, contestantsOf(bench)),
  },
  {
    name: 'semaphore-3',
    title: 'A semaphore with three permits, 32 callers',
    how:
      'Four processes with eight callers each want one of three permits of the same semaphore for 3 s: acquire, release, and again, ' +
      'with nothing to do under it. Only packages with semaphores. Checked by time stamps: never more than three at once.',
    metrics: waitMetrics,
    targets: [
      { text: 'leases/s, of redis-semaphore', of: toContestant('redis-semaphore', 'leasesPerSecond'), atLeast: 5 },
    ],
    run: (bench) => runContended(bench, 'semaphore-3', { sectionMs: 0, permits: 3 }, contestantsOf(bench)),
  },
];
