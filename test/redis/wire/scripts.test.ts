import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { ACQUIRE, RELEASE } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('scripts run by their hash', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('are loaded by the first call, on a server that does not know them', async () => {
    await admin().script('FLUSH');
    await resetCounts(admin());
    const { locks } = await start();
    for (let i = 0; i < 3; i++) await (await locks.acquire('a')).release();
    expect(await commandCounts(admin())).toMatchObject({ evalsha: 6, eval: 2 });
    expect(await admin().script('EXISTS', ACQUIRE.sha, RELEASE.sha)).toEqual([1, 1]);
  });

  it('are loaded once by each connection, however many calls are under way', async () => {
    const { locks } = await start();
    const resources = Array.from({ length: 20 }, (_, index) => `r${index}`);
    const texts = async (): Promise<number> => (await commandCounts(admin())).eval ?? 0;
    await resetCounts(admin());
    for (const expected of [2, 4]) {
      await admin().script('FLUSH');
      const leases = await Promise.all(resources.map((resource) => locks.acquire(resource)));
      await Promise.all(leases.map((lease) => lease.release()));
      expect(await texts()).toBe(expected);
    }
    await admin().script('FLUSH');
    await admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await Promise.all(resources.map(async (resource) => (await locks.acquire(resource)).release()));
    // With the start of the new connection.
    expect(await texts()).toBeLessThanOrEqual(4 + 3);
  });

  it('an acquisition that was withdrawn while its script was being loaded leaves no orphan', async () => {
    const { locks } = await start();
    await (await locks.acquire('a')).release();
    await admin().script('FLUSH');
    await admin().script('LOAD', RELEASE.lua);
    const controller = new AbortController();
    const acquiring = locks.acquire('a', { leaseMs: 60_000, signal: controller.signal });
    controller.abort();
    await rejection(acquiring);
    await eventually(async () => expect(await admin().script('EXISTS', ACQUIRE.sha)).toEqual([1]));
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  });
});

describe('a server without INCRBY', () => {
  const redis = useRedis({ args: ['--rename-command', 'INCRBY', ''] });
  const start = useInstances(() => redis().url);

  it('is a typed error that names the command, although Redis does not', async () => {
    const { locks } = await start();
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 5_000 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('This server does not know INCRBY: it was renamed');
  });
});

describe('a server without EVALSHA', () => {
  const redis = useRedis({ args: ['--rename-command', 'EVALSHA', ''] });
  const start = useInstances(() => redis().url);

  it('is a typed error that does not repeat what Redis repeats: the arguments of the command', async () => {
    const { locks } = await start({ keyPrefix: 'p' });
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 5_000 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/unknown command 'evalsha'\. This server does not know EVALSHA/i);
  });
});
