import { eventually } from '../../../support/expect/eventually.js';
import { type JobRun, useJobFleets } from './job-process.js';
import { useRedis } from '../../../support/redis/redis-server.js';

/** The intervals between the grants of the runs, by Redis's clock: a token is that time in units of 20 µs, times 64. */
function gapsMs(runs: readonly JobRun[]): number[] {
  return runs.slice(1).map((run, index) => (run.fencingToken - runs[index]!.fencingToken) / 64 / 50);
}

describe('three processes', () => {
  const redis = useRedis();
  const fleetOf = useJobFleets(() => redis().url);

  it('run a @SingletonInterval about once per interval, and continue when the runner dies', async () => {
    const everyMs = 500;
    const fleet = fleetOf({ kind: 'interval', everyMs, jobLastsMs: 20, options: { leaseMs: 1_000 } });
    await fleet.start(0, 0, 0);
    const firstSeen = fleet.runs.length;
    await eventually(() => expect(fleet.runs.length).toBeGreaterThanOrEqual(firstSeen + 8));
    const gaps = gapsMs(fleet.runs);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(0.8 * everyMs);
    const mean = gaps.reduce((sum, gap) => sum + gap) / gaps.length;
    expect(mean).toBeLessThan(2 * everyMs);

    const runner = fleet.runs.at(-1)!.by;
    await runner.signal('SIGKILL');
    const beforeItDied = fleet.runs.length;
    await eventually(() => expect(fleet.runs.length).toBeGreaterThanOrEqual(beforeItDied + 4));
    expect(Math.min(...gapsMs(fleet.runs))).toBeGreaterThanOrEqual(0.8 * everyMs);
    expect(fleet.output).toBe('');
  });

  it('run a @SingletonTimeout once, and one that is deployed soon after does not run it again', async () => {
    const fleet = fleetOf({ kind: 'timeout', everyMs: 100, jobLastsMs: 20 });
    await fleet.start(0, 0, 0);
    await fleet.start(0);
    await eventually(() => {
      for (const jobProcess of fleet.processes) {
        expect(jobProcess.told('tickFinished', 'tickSkipped')).toHaveLength(1);
      }
    });
    expect(fleet.runs).toHaveLength(1);
    expect(fleet.output).toBe('');
  });
});
