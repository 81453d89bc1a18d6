// The order of the test files: the longest first, so that no worker waits for one that another began last.
import TestSequencer from '@jest/test-sequencer';

/**
 * Files that take 20 s and more, the longest first. Where Jest has no times of an earlier run (on CI), it would go by the size of
 * a file, and most of these are small: what they wait for is elsewhere.
 */
export const LONGEST = [
  'test/docs/site/site.test.ts',
  'test/stores/cluster.slow.test.ts',
  'tools/chaos/short-run.test.ts',
  'test/stores/sentinel.slow.test.ts',
  'test/stores/redis.test.ts',
  'test/docs/snippets.test.ts',
  'tools/chaos/mutants/hunt.test.ts',
  'tools/chaos/topologies-run.test.ts',
  'test/quorum/faults.test.ts',
  'test/redis/queue/crowds.test.ts',
  'sample-app/test/demo.slow.test.ts',
  'test/nest/schedule/cron-processes.slow.test.ts',
  'test/stores/quorum-on-redis.slow.test.ts',
  'test/stacks/databases/drivers/drivers.slow.test.ts',
  'tools/chaos/cron/run-cron.test.ts',
  'tools/chaos/leaks/leaks.test.ts',
  'tools/chaos/storms-run.test.ts',
  'test/nest/lifecycle/boot-process.slow.test.ts',
  'test/stores/durable.slow.test.ts',
  'test/docs/fencing-sql.slow.test.ts',
  'test/stacks/types.slow.test.ts',
  'test/nest/transactions/pglite.test.ts',
  'test/core/leader/leadership-simulation.test.ts',
  'test/core/singleton/singleton-simulation.test.ts',
];

export default class LongestFirst extends TestSequencer {
  /** Files that failed in the run before stay in front. */
  sort(tests) {
    const rank = (test) => (this.hasFailed(test) ? -1 : placeOf(test.path));
    return super.sort(tests).sort((one, other) => rank(one) - rank(other));
  }
}

function placeOf(path) {
  const place = LONGEST.findIndex((file) => path.endsWith(`/${file}`));
  return place < 0 ? LONGEST.length : place;
}
