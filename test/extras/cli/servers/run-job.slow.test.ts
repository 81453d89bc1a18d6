import { eventually } from '../../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import type { JobSetup } from '../../../features/jobs/nest/job-process-main.js';
import { useJobFleets } from '../../../features/jobs/nest/job-process.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { startCli } from '../run-process.js';

const HOUR_MS = 3_600_000;

describe('job --run, between processes', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const fleetOf = useJobFleets(() => redis().url);

  const start = async (count: number, jobLastsMs: number, options: JobSetup['options'] = {}) => {
    const fleet = fleetOf({ kind: 'interval', everyMs: HOUR_MS, jobLastsMs, options });
    await fleet.start(...Array.from({ length: count }, () => 0));
    const { keyPrefix } = fleet;
    await eventually(async () => expect(await admin().zcard(`${keyPrefix}:{cron:job}:instances`)).toBe(count));
    const runIt = (...argv: string[]) =>
      startCli(['job', 'job', '--run', '--prefix', keyPrefix, ...argv], { REDIS_URL: redis().url });
    return { fleet, runIt };
  };

  it('runs it on one of two, once, and waits for its end', async () => {
    const { fleet, runIt } = await start(2, 500);
    const { code, stdout, stderr } = await runIt('--by', 'ann', '--json').ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { ran } = JSON.parse(stdout) as { ran: { tookMs: number } };
    expect(ran).toMatchObject({ outcome: 'ok', by: 'ann' });
    expect(ran.tookMs).toBeGreaterThanOrEqual(400);
    expect(fleet.runs).toHaveLength(1);
    expect(fleet.runs[0]!.tick).toMatch(/^manual:\S+ by ann$/);
  });

  it('takes the request back from a frozen instance, which runs nothing when it wakes up', async () => {
    const { fleet, runIt } = await start(1, 0);
    const [frozen] = fleet.processes;
    frozen!.pause();
    const { code, stdout, stderr } = await runIt().ended;
    frozen!.resume();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('No instance accepted the request to run the job "job" within 5 s.');
    // It hears the next message after the one of before.
    expect((await runIt().ended).code).toBe(0);
    expect(fleet.runs).toHaveLength(1);
  });

  it('reports a crashed run if its process dies', async () => {
    const { fleet, runIt } = await start(1, HOUR_MS, { leaseMs: 1_000 });
    const { ended } = runIt();
    await eventually(() => expect(fleet.runs).toHaveLength(1));
    await fleet.processes[0]!.signal('SIGKILL');
    expect(await ended).toMatchObject({ code: 1, stdout: expect.stringContaining(': crashed') });
  });

  describe('of an instance that has taken the request, and begins nothing', () => {
    const startInstances = useInstances(() => redis().url);
    /** It knows a job, and this is what it does when it is to run it. */
    const instanceThat = async (runs: (instance: LockInstance) => void) => {
      const instance = await startInstances();
      const store = new RedisJobStore(instance.store);
      await store.register([{ resource: 'cron:job' }]);
      instance.locks.jobs.records(store).requests.serve({
        has: () => true,
        run: () => (runs(instance), new Promise(() => {})),
      });
      return instance;
    };
    const runIt = (...argv: string[]) =>
      startCli(['job', 'job', '--run', '--prefix', 'lock', ...argv], { REDIS_URL: redis().url }).ended;

    it('reports that the process is most likely dead if it is gone, and runs nothing elsewhere', async () => {
      // Dies without notice, as in a crash.
      const dead = await instanceThat(({ store }) => void store.close());
      const { code, stdout, stderr } = await runIt();
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(
        `${dead.instanceId} accepted the request to run the job "job", but is no longer connected, and no run has started`,
      );
      expect(stderr).toContain('npx nestjs-redis-lock job job --history');
      expect(await admin().exists('lock:{cron:job}:runs')).toBe(0);
    });

    it('waits while its process is alive, and reports in the end that the run has not started', async () => {
      const alive = await instanceThat(() => {});
      const { code, stdout, stderr } = await runIt('--wait', '6s');
      expect({ code, stdout }).toEqual({ code: 5, stdout: '' });
      expect(stderr).toContain(
        `${alive.instanceId} accepted the request to run the job "job", but has not started it within 6 s`,
      );
    });
  });

  it('leaves the run alone at Ctrl-C', async () => {
    const { fleet, runIt } = await start(1, 1_500);
    const { child, ended } = runIt();
    await eventually(() => expect(fleet.runs).toHaveLength(1));
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130 });
    await eventually(() => expect(fleet.runs[0]!.endedAt).toBeDefined());
    expect(fleet.runs).toHaveLength(1);
  });
});
