import { setTimeout as sleep } from 'node:timers/promises';
import { commandCounts, keysWithTtl, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('acquire in one atomic script', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  /** The fence key is the one that stays; it is one for the whole prefix. */
  const expectOnlyKeysThatExpire = async (): Promise<void> => {
    const { 'lock:fence': fence, ...others } = await keysWithTtl(admin());
    expect(fence ?? -1).toBe(-1);
    for (const ttl of Object.values(others)) expect(ttl).toBeGreaterThan(0);
  };

  it('sets owner, fencing token and expiry together, with a single command', async () => {
    const { locks, instanceId } = await start();
    await (await locks.acquire('warm-up')).release();
    // A grant within a millisecond or two of another one finds a fence that is new enough, and sets none.
    await sleep(5);
    await resetCounts(admin());
    const lease = await locks.acquire('order:1', { leaseMs: 5_000 });
    expect(await commandCounts(admin())).toMatchObject({ evalsha: 1, set: 2 });

    const [owner, token] = (await admin().get('lock:{order:1}'))!.split(' ');
    expect(owner).toMatch(new RegExp(`^${instanceId}/[\\w-]{4}/[\\w-]{12}$`));
    expect(Number(token)).toBe(lease.fencingToken);
    const ttl = await admin().pttl('lock:{order:1}');
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(5_000);
  });

  it('costs two commands a lease, and leaves no key but the fence behind', async () => {
    const { locks } = await start();
    await (await locks.acquire('warm-up')).release();
    await resetCounts(admin());
    for (let i = 0; i < 10; i++) await (await locks.acquire(`order:${i}`)).release();
    const { evalsha, eval: evals, publish } = await commandCounts(admin());
    expect([evalsha, evals, publish]).toEqual([20, undefined, undefined]);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it.each(['exclusive', 'reentrant'] as const)(
    'a holder that is killed leaves only what expires (%s)',
    async (mode) => {
      const holder = await startProcess(400);
      await holder.ask('acquire', 'a', { mode });
      await holder.kill();
      await expectOnlyKeysThatExpire();
      const { locks } = await start();
      const lease = await locks.acquire('a');
      expect(lease.isHeld()).toBe(true);
    },
  );
});

describe('waiting for a busy resource', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('does not storm a lock that somebody made permanent: it is asked for again in a second', async () => {
    const [holder, other] = [await start(), await start()];
    await holder.locks.acquire('x');
    await admin().persist('lock:{x}');
    const owner = { resource: 'x', id: 'other/1', mode: 'exclusive' } as const;
    expect(await other.store.acquire(owner, 1_000)).toMatchObject({ status: 'busy', ttlMs: 1_000 });
  });
});
