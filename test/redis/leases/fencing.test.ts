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
    const ahead = Math.floor(first.fencingToken / 32) + inAnHour + 1;
    await admin().set('lock:fence', String(ahead));
    const tokens = [first.fencingToken];
    for (let i = 0; i < 3; i++) {
      await using lease = await locks.acquire('x');
      tokens.push(lease.fencingToken);
    }
    expectStrictGrowth(tokens);
    expect(tokens[1]).toBe((ahead + 1) * 32);
  });

  it('begin above all 32 tokens of a grant by the version before, which took half a tick', async () => {
    const { locks } = await start();
    const first = await locks.acquire('x');
    await first.release();
    for (const ahead of [1_000_000, 2_000_001]) {
      const half = first.fencingToken / 32 + ahead;
      await admin().set('lock:fence', String(half));
      await using lease = await locks.acquire('x');
      const { fencingToken } = lease;
      expect(fencingToken).toBeGreaterThan(half * 32 + 31);
      expect(fencingToken % 64).toBe(0);
      // The next grant of that version, too, is above the 64 tokens of this one.
      expect((Number(await admin().get('lock:fence')) + 1) * 32).toBeGreaterThan(fencingToken + 63);
    }
  });

  it('name one of two readers that the version before granted within one tick', async () => {
    const [a, b] = [await start(), await start()];
    const mine = await a.locks.acquire('x', { mode: 'read' });
    const theirs = await b.locks.acquire('x', { mode: 'read' });
    const first = mine.fencingToken;
    const members = await admin().hgetall('lock:{x}');
    for (const [owner, text] of Object.entries(members)) {
      const token = owner.startsWith(a.store.instanceId) ? first : first + 32;
      if (owner.includes('/')) await admin().hset('lock:{x}', owner, text.replace(/ \d+ /, ` ${token} `));
    }
    expect(await a.store.forceRelease('x', first + 31)).toBe(true);
    expect([await mine.verify(), await theirs.verify()]).toEqual([false, true]);
    await Promise.all([mine.release(), theirs.release()]);
  });

  it('are whole multiples of 64 that follow the clock of Redis, in units of 20 µs since 2020', async () => {
    const { locks } = await start();
    const { fencingToken } = await locks.acquire('x');
    const [seconds] = await admin().time();
    const ticks = fencingToken / 64;
    expect(Number.isInteger(ticks)).toBe(true);
    expect(Math.abs(ticks / 50_000 - (Number(seconds) - 1_577_836_800))).toBeLessThan(60);
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
