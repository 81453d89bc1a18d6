import { redlock } from '../../../lib/migration.js';
import { eventually } from '../../support/expect/eventually.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('alsoLock, and the Redis of the other library', () => {
  const ours = useRedis();
  const old = useRedis();
  const instance = useInstances(() => ours().url);
  const admin = useAdmin(() => old().url);

  it('lost replies leave no old lock behind', async () => {
    await using proxy = await TcpProxy.start(old().port);
    const { locks } = await instance({ defaults: { leaseMs: 60_000 } });
    const alsoLock = redlock({ client: proxy.url });
    await locks.using('warm', { alsoLock }, () => {});

    let lost = proxy.loseNextReply('commands');
    const [lease] = await Promise.all([locks.acquire('stock', { alsoLock }), lost]);
    lost = proxy.loseNextReply('commands');
    const [released] = await Promise.allSettled([lease.release(), lost]);
    expect(released).toMatchObject({ reason: { code: 'LOCK_UNAVAILABLE' } });
    await eventually(async () => expect(await admin().exists('stock')).toBe(0));

    lost = proxy.loseNextReply('commands');
    const [refused] = await Promise.allSettled([locks.acquire('stock', { alsoLock, waitMs: 0 }), lost]);
    expect(refused).toMatchObject({ reason: { code: 'LOCK_UNAVAILABLE' } });
    await eventually(async () => expect(await admin().exists('stock')).toBe(0));
    expect(await locks.using('stock', { alsoLock }, () => 'next')).toBe('next');
  });

  it('a value of another type, or without an end, is named in the error', async () => {
    const { locks } = await instance();
    const alsoLock = redlock({ client: old().url });
    await admin().lpush('list', 'x');
    await admin().set('endless', 'x');
    await expect(locks.acquire('list', { alsoLock })).rejects.toThrow(
      /"list" of redlock \(alsoLock\): WRONGTYPE.*value\. This key of the old code .* key function/,
    );
    await expect(locks.acquire('endless', { alsoLock, waitMs: 0 })).rejects.toThrow(/which has no end/);
    expect(locks.stats()).toMatchObject({ resources: 0, leases: 0 });
  });

  it('a wrong password is named at the first call', async () => {
    const { locks } = await instance();
    const client = old().url.replace('//', '//nobody:wrong@');
    const call = locks.acquire('stock', { alsoLock: redlock({ client }), waitMs: 0 });
    await expect(call).rejects.toThrow(/WRONGPASS/);
  });
});
