import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { forgetful } from '../../support/world/forgetful.js';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('a process that closes while Redis is far away', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('gives back the tick that it claims, and then the lock of the job', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, store } = await start({
      connection: proxy.url,
      defaults: { leaseMs: 60_000, attemptTimeoutMs: 2_000 },
    });
    const runs = locks.jobs.runs(forgetful(new RedisJobStore(store)));
    const job = { job: 'report', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
    await runs.run({ ...job, tick: 'one' }, () => {});
    await (await locks.acquire('x')).release(); // Redis knows this script, and not yet the one that gives a tick back

    // Each answer takes more than half of the time-out of an attempt, and the release waits for the one before it.
    proxy.delayMs = 550;
    const running = runs.run({ ...job, tick: 'two' }, () => {
      throw new Error('it ran');
    });
    await locks.shutdown(0);
    expect(await running).toBeUndefined();

    const clients = async (): Promise<number> =>
      String(await admin().client('LIST'))
        .trim()
        .split('\n').length;
    await eventually(async () => expect(await clients()).toBe(1)); // all that was sent has arrived
    expect(await admin().exists('lock:{cron:report}')).toBe(0);
    const next = await start();
    const ran = next.locks.jobs
      .runs(forgetful(new RedisJobStore(next.store)))
      .run({ ...job, tick: 'two' }, () => 'ran');
    expect(await ran).toBe('ran');
  });
});
