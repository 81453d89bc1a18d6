import { Redis } from 'ioredis';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { startRedis, type RedisServer } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

const POLLING = { retry: fixedInterval({ intervalMs: 100 }) };

describe('Redis that is down', () => {
  let redis: RedisServer;
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis.stop());
  const start = useInstances(() => redis.url);
  const startProcess = useProcesses(() => redis.url);

  afterEach(async () => {
    await redis.resume();
    if ((await ask('PING').catch(() => 'down')) !== 'PONG') await redis.restart();
    await ask('FLUSHALL');
  });

  const ask = async (command: string, ...args: string[]): Promise<unknown> => {
    const client = new Redis(redis.url, { retryStrategy: null, maxRetriesPerRequest: 0, disconnectTimeout: 0 });
    client.on('error', () => undefined);
    try {
      return await client.call(command, ...args);
    } finally {
      client.disconnect();
    }
  };

  it('at boot: LockUnavailableError after waitMs, and it recovers by itself', async () => {
    await redis.kill();
    const { locks, store } = await start({ patienceMs: 0 });
    const from = performance.now();
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 300 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/not connected to Redis at 127\.0\.0\.1:\d+ \(connect ECONNREFUSED/);
    expect(performance.now() - from).toBeLessThan(300 + 2_000);
    expect(await rejection(locks.tryAcquire('a'))).toBeInstanceOf(LockUnavailableError);
    expect(store.connection.describeTrouble()).toMatch(/ECONNREFUSED/);

    const waiting = locks.acquire('a', { waitMs: Infinity });
    await redis.restart();
    const lease = await waiting;
    expect(await lease.verify()).toBe(true);
    expect(store.connection.describeTrouble()).not.toMatch(/ECONNREFUSED/);
    await lease.release();
  });

  it('killed and restarted while callers wait: each is granted in the end, one at a time', async () => {
    const [a, b] = [await start({ defaults: { leaseMs: 2_000 } }), await start({ defaults: { leaseMs: 2_000 } })];
    const lease = await a.locks.acquire('x');
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise(setImmediate);
      inside--;
    };
    const waiting = [a, b, a, b].map(({ locks }) => locks.using('x', { waitMs: 60_000 }, work));
    await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(2));
    await redis.kill();
    await redis.restart();
    await Promise.all(waiting);
    expect(most).toBe(1);
    expect(await lease.verify()).toBe(false); // the data was lost, and the lock with it
    expect(await ask('KEYS', '*')).toEqual(['lock:fence']);
  });

  it('for longer than a waiter has patience: the waiter says that it was busy, and gives up in time', async () => {
    const [a, b] = [await start(), await start()];
    await a.locks.acquire('x');
    const outcome = rejection<LockTimeoutError>(b.locks.acquire('x', { waitMs: 800 }));
    await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(1));
    await redis.pause();
    const error = await outcome;
    expect(error).toBeInstanceOf(LockTimeoutError);
    await redis.resume();
  });

  it('that dies while calls wait in the queue, or poll: they say so, and not that it was busy', async () => {
    const [a, b] = [await start(), await start()];
    await Promise.all(['queued', 'polled'].map((name) => a.locks.acquire(name, { leaseMs: 60_000 })));
    const calls = [700, 2_000, 2_000].flatMap((waitMs) => [
      rejection(b.locks.acquire('queued', { waitMs })),
      rejection(b.locks.acquire('polled', { ...POLLING, waitMs })),
    ]);
    await eventually(async () => expect((await a.locks.inspect('queued')).waiters).toHaveLength(1));
    await redis.kill();
    for (const error of await Promise.all(calls)) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as LockUnavailableError).message).toMatch(
        /not connected to Redis at 127\.0\.0\.1:\d+|connection broke/,
      );
    }
  });

  it('that lasts: calls fail after unavailableMs, queued or polling, and those that began before count from then', async () => {
    const [a, b] = [await start(), await start({ defaults: { waitMs: 60_000, unavailableMs: 1_000 } })];
    await Promise.all(['queued', 'polled'].map((name) => a.locks.acquire(name, { leaseMs: 60_000 })));
    const call = (name: string, how: LockOptions = {}) => rejection<LockUnavailableError>(b.locks.acquire(name, how));
    const twenty = (from: (index: number) => Promise<LockUnavailableError>) =>
      Array.from({ length: 20 }, (_, i) => from(i));
    const before = [...twenty(() => call('queued')), ...twenty(() => call('polled', POLLING))];
    await eventually(async () => expect((await a.locks.inspect('queued')).waiters).toHaveLength(1));
    await redis.kill();
    const after = [...twenty((i) => call(`y${i}`)), ...twenty((i) => call(`z${i}`, POLLING))];
    const patient = [{}, POLLING].map((how, i) => call(`patient${i}`, { ...how, unavailableMs: 4_000 }));
    for (const error of await Promise.all([...before, ...after])) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/not connected to Redis at .*\. The call waited 1 s for Redis \(unavailableMs\)$/);
    }
    let over = 0;
    for (const each of patient) void each.then(() => over++);
    await new Promise(setImmediate);
    expect(over).toBe(0);
    for (const each of patient) expect((await each).message).toContain('waited 4 s for Redis (unavailableMs)');
  });

  it('that ends within unavailableMs: each call continues, and is granted', async () => {
    const b = await start({ defaults: { waitMs: 60_000, unavailableMs: 30_000 } });
    const lease = await b.locks.acquire('x');
    await redis.kill();
    const calls = [b.locks.acquire('y'), b.locks.acquire('y', POLLING)];
    const works = calls.map((call) => call.then((got) => got.release()));
    await redis.restart();
    await expect(Promise.all(works)).resolves.toHaveLength(2);
    await lease.release();
  });

  it('CLIENT KILL of the command connection: the lease is kept, and renewed over a new one', async () => {
    const { locks, events } = await start();
    const lease = await locks.acquire('x', { leaseMs: 1_500 });
    for (let i = 0; i < 3; i++) {
      await ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await eventually(async () => expect(await lease.verify()).toBe(true));
    }
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
  });

  it('CLIENT KILL of the subscriber: it listens again, and waiters look for themselves', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x', { leaseMs: 60_000 });
    const waiting = b.locks.acquire('x', { waitMs: 60_000 });
    await eventually(async () => expect(instancesOf((await a.locks.inspect('x')).waiters)).toEqual([b.instanceId]));
    const channels = async () => ((await ask('PUBSUB', 'CHANNELS', '*')) as string[]).sort();
    const before = await channels();
    let reconnections = 0;
    b.store.listen({ granted: () => {}, reconnected: () => reconnections++ });
    await ask('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => expect(await channels()).toEqual(before));
    await eventually(() => expect(reconnections).toBe(1)); // "something may have been missed"
    await lease.release();
    expect((await waiting).isHeld()).toBe(true);
  });

  it('a connection that is silent for long is closed, and reconnected', async () => {
    await using proxy = await TcpProxy.start(redis.port);
    const { locks } = await start({ connection: proxy.url });
    await (await locks.acquire('warm-up')).release();
    proxy.blackHole('toClient', 'commands');
    const waiting = locks.acquire('x', { waitMs: 60_000 });
    proxy.cut('commands');
    await rejection(locks.tryAcquire('y'));
    proxy.heal();
    expect((await waiting).isHeld()).toBe(true);
  });

  it.each(['up', 'down', 'silent'])('a process exits by itself after its shutdown, with Redis %s', async (state) => {
    const child = await startProcess();
    await child.ask('acquire', 'x');
    if (state === 'down') await redis.kill();
    if (state === 'silent') await redis.pause();
    const exited = new Promise((resolve) => child.child.once('exit', (code, signal) => resolve([code, signal])));
    await child.ask('shutdown');
    expect(await exited).toEqual([0, null]);
  });
});
