import { OnceCalls } from '../../../../lib/features/once/core/once-calls.js';
import { RedisResultStore } from '../../../../lib/features/once/redis/redis-result-store.js';
import { gate } from '../../../support/expect/tracked.js';
import { eventually } from '../../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const OPTIONS = { resultTtlMs: 600_000 };

describe('results of once in a Redis that restarts from an old snapshot', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  let runs: number;
  let once: OnceCalls;

  const callsOf = ({ locks, store }: LockInstance): OnceCalls =>
    new OnceCalls(locks.deps, locks.leases, locks.watches, new RedisResultStore(store));
  const work = async (): Promise<number> => ++runs;
  const restart = async (): Promise<void> => {
    await redis().kill();
    await redis().restart({ keepData: true });
  };

  beforeEach(async () => {
    runs = 0;
    once = callsOf(await start({ defaults: { leaseMs: 1_000 } }));
  });

  it('are gone if they are newer than the snapshot, and the work runs again', async () => {
    await admin().flushall();
    await admin().save();
    expect(await once.run('newer', OPTIONS, work)).toBe(1);
    await restart();
    expect(await once.run('newer', OPTIONS, work)).toBe(2);
  }, 60_000);

  it('are as old as the snapshot, even if they were forgotten since', async () => {
    expect(await once.run('older', OPTIONS, work)).toBe(1);
    await admin().save();
    await once.forget('older');
    expect(await once.run('older', OPTIONS, work)).toBe(2);
    await restart();
    expect(await once.run('older', OPTIONS, work)).toBe(1);
  }, 60_000);

  it('are made again once the lease of a run in the snapshot has ended', async () => {
    const finish = gate();
    const slow = async (): Promise<number> => {
      await finish.opened;
      return work();
    };
    const first = once.run('held', OPTIONS, slow);
    await eventually(async () => expect(await admin().exists('lock:{once:held}')).toBe(1));
    await admin().save();
    finish.open();
    expect(await first).toBe(1);
    await restart();
    // The owner in the snapshot has released long ago, and nobody renews its lease.
    expect(await once.run('held', OPTIONS, work)).toBe(2);
  }, 60_000);
});
