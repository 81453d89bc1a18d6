import type { Redis } from 'ioredis';
import type { RedisConnectionOption } from '../../../../lib/redis/connection/connection-options.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { slotOf, SLOTS } from '../../../../lib/redis/topology/slot.js';
import { eventually } from '../../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { every } from '../../../support/world/every.js';
import { RedisCluster } from '../../../support/redis/redis-cluster.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const MINUTE_MS = 60_000;
const WELL = ['one', 'two', 'three'];

describe('one of many jobs, which Redis refuses', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** An instance that has all of these jobs, and what it warns of. */
  async function watch(jobs: readonly string[], connection: RedisConnectionOption = redis().url): Promise<string[]> {
    const warnings: string[] = [];
    const { locks, store } = await start({ connection, warn: (line) => warnings.push(line) });
    const missed = locks.jobs.missedTicks(new RedisJobStore(store));
    for (const job of jobs) {
      missed.add({
        job,
        historySize: 10,
        graceMs: MINUTE_MS,
        onMissed: 'runOnce',
        catchUpWindowMs: 60 * MINUTE_MS,
        schedule: () => every(60 * MINUTE_MS),
        runOwed: async () => {},
      });
    }
    missed.start();
    return warnings;
  }

  async function expectToldOf(warnings: string[], wrong: string, why: RegExp, wells: [string, Redis][]): Promise<void> {
    await eventually(async () => {
      for (const [job, at] of wells) expect([job, await at.exists(`lock:{cron:${job}}:job`)]).toEqual([job, 1]);
      expect(warnings).toEqual([expect.stringMatching(why)]);
    }, 20_000);
    expect(warnings[0]).toMatch(`Cannot check the job "${wrong}" for missed ticks: `);
  }

  const onThisOne = (jobs: readonly string[]) => jobs.map((job): [string, Redis] => [job, admin()]);

  it('because another program has written its key, is reported by its name, and the others are checked', async () => {
    await admin().set('lock:{cron:wrong}:job', 'of another program');
    const warnings = await watch([...WELL, 'wrong']);
    await expectToldOf(warnings, 'wrong', /WRONGTYPE/, onThisOne(WELL));
  });

  it('because the ACL user has no right for its name', async () => {
    const names = ['lock:jobs', ...WELL.map((job) => `lock:{cron:${job}}*`)].map((pattern) => `~${pattern}`);
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '+@all', '&*', ...names);
    const warnings = await watch([...WELL, 'wrong'], redis().url.replace('://', '://app:secret@'));
    await expectToldOf(warnings, 'wrong', /NOPERM|key/, onThisOne(WELL));
  });

  it('alone, because it was added later, does not stop the checks of the others', async () => {
    await admin().set('lock:{cron:late}:job', 'of another program');
    const warnings: string[] = [];
    const told: string[] = [];
    const { locks, store } = await start({ warn: (line) => warnings.push(line) });
    locks.observers.add(({ job }) => told.push(job), ['tickMissed']);
    const missed = locks.jobs.missedTicks(new RedisJobStore(store));
    const often = {
      historySize: 10,
      graceMs: 200,
      onMissed: 'skip',
      catchUpWindowMs: MINUTE_MS,
      schedule: () => every(500),
      runOwed: async () => {},
    } as const;
    for (const job of WELL) missed.add({ job, ...often });
    missed.start();
    await eventually(() => expect([...new Set(told)].sort()).toEqual([...WELL].sort()));
    missed.add({ job: 'late', ...often });
    await eventually(() =>
      expect(warnings).toEqual([expect.stringMatching(/^Cannot check the job "late" .*WRONGTYPE/)]),
    );
    told.length = 0;
    await eventually(() => expect([...new Set(told)].sort()).toEqual([...WELL].sort()));
  });

  it('because the primary of its slot is unreachable', async () => {
    await using cluster = await RedisCluster.start({ args: ['--cluster-require-full-coverage', 'no'] });
    const nodeOf = (job: string) => cluster.nodes[Math.floor((slotOf(`lock:{cron:${job}}`) * 3) / SLOTS)]!;
    const jobs = Array.from({ length: 20 }, (_, index) => `job-${index}`);
    const wrong = jobs.find((job) => nodeOf(job) === cluster.nodes[2])!;
    const well = jobs.filter((job) => nodeOf(job) !== cluster.nodes[2]);
    const connection = { cluster: cluster.nodes.map(({ server }) => server.url) };
    await start({ connection });
    await cluster.nodes[2]!.server.stop();
    const warnings = await watch([...well, wrong], connection);
    await expectToldOf(
      warnings,
      wrong,
      /not connected|Connection is closed|down|refused|no answer/i,
      well.map((job) => [job, nodeOf(job).admin]),
    );
  }, 60_000);
});
