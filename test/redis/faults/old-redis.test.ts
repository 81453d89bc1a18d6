import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { LockUnavailableError } from '../../../lib/index.js';
import type { ForeignLock } from '../../../lib/migration.js';
import { RedisJobStore } from '../../../lib/redis/redis-job-store.js';
import { redisson, redlock, setNx } from '../../../lib/migration.js';
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

  describe('a run of a job, and what another run of the job has left', () => {
    const context = { instanceId: 'test', now: () => performance.now(), randomId: () => randomUUID() };
    const NEVER = new AbortController().signal;
    const kinds: [string, (client: string) => ForeignLock][] = [
      ['setNx', (client) => setNx({ client, key: 'job', value: (id) => `host ${id}`, keepMs: 30_000 })],
      ['redlock', (client) => redlock({ clients: [client] })],
      ['redisson', (client) => redisson({ client })],
    ];

    it.each(kinds)('%s: a later one takes it over, whether it was released or not', async (_, lockOn) => {
      const client = lockOn(old().url).open(context);
      const claimOf = (token: number, name = 'nestjs-redis-lock:one:') => client.claim('job', { name, token });
      const [first, second, third] = [claimOf(9), claimOf(10), claimOf(11)];
      const held = { status: 'held' };
      expect(await first.tryAcquire(60_000, NEVER)).toEqual(held);
      expect(await second.tryAcquire(1_000, NEVER)).toEqual(held);
      // It stays as long as it was promised.
      expect(await admin().pttl('job')).toBeGreaterThan(50_000);
      expect(await first.renew(60_000)).toBe(false);
      expect(await first.release(0)).toBe(false);
      // Sent before, and executed late.
      expect(await first.tryAcquire(60_000, NEVER)).toMatchObject({ status: 'busy', isOurs: true });
      expect(await second.renew(60_000)).toBe(true);
      expect(await second.release(20_000)).toBe(true);
      expect(await third.tryAcquire(1_000, NEVER)).toEqual(held);
      expect(await second.release(20_000)).toBe(false);

      for (const other of [claimOf(99, 'nestjs-redis-lock:two:'), client.claim('job')]) {
        const busy = await other.tryAcquire(1_000, NEVER);
        expect(busy).toEqual({ status: 'busy', ttlMs: expect.any(Number) as number });
      }
      expect(await third.renew(1_000)).toBe(true);
      await client.close();
    });

    it('runs one tick after another, while the key of the first one stays', async () => {
      const { locks, store } = await instance();
      const runs = locks.singletonRuns(new RedisJobStore(store));
      const alsoLock = setNx({ client: old().url, key: 'job', keepMs: 60_000 });
      const run = (tick: string) =>
        runs.run(
          { job: 'report', tick, overlap: 'skip', onCrash: 'retry', keepMs: 60_000, lock: { alsoLock } },
          async () => `${tick}: ${await admin().set('job', 'an old pod', 'PX', 1_000, 'NX')}`,
        );
      expect(await run('t1')).toBe('t1: null');
      expect(await admin().pttl('job')).toBeGreaterThan(1_000);
      expect(await run('t2')).toBe('t2: null');
      await admin().set('job', 'an old pod');
      expect(await run('t3')).toBeUndefined();
    });
  });

  it('a run whose own lock is in another database is no other run of the job: what it holds is left to it', async () => {
    const runsIn = async (db: number) => {
      const { locks, store } = await instance({ connection: `${ours().url}/${db}` });
      return locks.singletonRuns(new RedisJobStore(store));
    };
    const [one, two] = [await runsIn(1), await runsIn(2)];
    const alsoLock = setNx({ client: old().url, key: 'job' });
    const job = {
      job: 'report',
      tick: 't1',
      overlap: 'skip',
      onCrash: 'retry',
      keepMs: 60_000,
      lock: { alsoLock },
    } as const;
    await two.run({ ...job, tick: 't0' }, () => {}); // the numbers of its tokens are larger
    const ran = await one.run(job, async (lease) => {
      expect(await two.run(job, () => 'the other one ran as well')).toBeUndefined();
      return lease.verify();
    });
    expect(ran).toBe(true);
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
