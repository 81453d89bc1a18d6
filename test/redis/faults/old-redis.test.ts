import { inspect } from 'node:util';
import { type ForeignLock, LockUnavailableError } from '../../../lib/index.js';
import { redisson, redlock } from '../../../lib/migration.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
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

  it('one that cannot be reached is named with the reason, however short the wait', async () => {
    const { locks } = await instance();
    const client = 'redis://:hunter2@127.0.0.1:1';
    const clients = [client, 'redis://127.0.0.1:2', old().url];
    const named = /\(alsoLock\): not connected to Redis at 127\.0\.0\.1:1 \(connect ECONNREFUSED/;
    const noMajority = /no majority .*127\.0\.0\.1:[12] \(connect ECONNREFUSED/;
    const fails = async (resource: string, alsoLock: ForeignLock, waitMs: number, why: RegExp): Promise<void> => {
      const error = await rejection(locks.acquire(resource, { alsoLock, waitMs }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(why);
      expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
    };
    // A command waits for the first connection for 750 ms.
    await Promise.all(
      [0, 300, 900].flatMap((waitMs) => [
        fails(`redlock ${waitMs}`, redlock({ client }), waitMs, named),
        fails(`redisson ${waitMs}`, redisson({ client }), waitMs, named),
        fails(`quorum ${waitMs}`, redlock({ clients }), waitMs, noMajority),
      ]),
    );
  });

  it('a wrong password is named at the first call', async () => {
    const { locks } = await instance();
    const client = old().url.replace('//', '//nobody:wrong@');
    const call = locks.acquire('stock', { alsoLock: redlock({ client }), waitMs: 0 });
    await expect(call).rejects.toThrow(/WRONGPASS/);
  });
});
