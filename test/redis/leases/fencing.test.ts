import { Redis } from 'ioredis';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('fencing tokens', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const expectStrictGrowth = (tokens: number[]): void => {
    for (let i = 1; i < tokens.length; i++) expect(tokens[i]).toBeGreaterThan(tokens[i - 1]!);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  };

  it('grow when the clock of Redis has stepped back: the stored tick continues', async () => {
    const { locks } = await start();
    const inAnHour = 1_000_000 * 3_600 * 0.1;
    const first = await locks.acquire('x');
    await first.release();
    const ahead = Math.floor(first.fencingToken / 32) + inAnHour;
    await admin().set('lock:fence', String(ahead));
    const tokens = [first.fencingToken];
    for (let i = 0; i < 3; i++) {
      await using lease = await locks.acquire('x');
      tokens.push(lease.fencingToken);
    }
    expectStrictGrowth(tokens);
    expect(tokens[1]).toBe((ahead + 1) * 32);
  });

  it('are whole multiples of 32 that follow the clock of Redis, in units of 10 µs since 2020', async () => {
    const { locks } = await start();
    const { fencingToken } = await locks.acquire('x');
    const [seconds] = await admin().time();
    const ticks = fencingToken / 32;
    expect(Number.isInteger(ticks)).toBe(true);
    expect(Math.abs(ticks / 100_000 - (Number(seconds) - 1_577_836_800))).toBeLessThan(60);
  });

  it('one fence key serves all resources of a prefix, and each prefix has its own', async () => {
    const [a, b] = [await start(), await start({ keyPrefix: 'lock:other' })];
    for (const { locks } of [a, b]) for (const name of ['x', 'y', 'z']) await (await locks.acquire(name)).release();
    expect((await admin().keys('*')).sort()).toEqual(['lock:fence', 'lock:other:fence']);
  });

  it('is never minted by an attempt that is not granted', async () => {
    const [a, b] = [await start(), await start()];
    await a.locks.acquire('x');
    const client = new Redis(redis().url);
    const before = await client.get('lock:fence');
    for (let i = 0; i < 3; i++) await b.locks.tryAcquire('x');
    expect(await client.get('lock:fence')).toBe(before);
    client.disconnect();
  });
});
