import { Redis as First } from 'ioredis-first';
import { Redis as Hasty } from 'ioredis-hasty';
import { Redis as Last } from 'ioredis-last';
import type { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { OwnTimers } from '../../support/expect/own-timers.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const VERSIONS = [
  ['5.2.5', First],
  ['5.8.1', Hasty],
  ['5.11.1', Last],
] as const;

describe.each(VERSIONS)('with a client of ioredis %s', (_version, Client) => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const clientOn = (port: number): Redis => {
    return new Client({ port, host: '127.0.0.1', db: 3, lazyConnect: true }) as unknown as Redis;
  };

  it('a lock is handed over', async () => {
    const [a, b] = [
      await start({ connection: clientOn(redis().port) }),
      await start({ connection: clientOn(redis().port) }),
    ];
    const lease = await a.locks.acquire('x');
    const next = b.locks.acquire('x');
    await untilQueued(a, 'x', b);
    await lease.release();
    expect(await (await next).verify()).toBe(true);
    await (await next).release();
  });

  it('a connection on which SELECT was refused is none: nothing is written elsewhere, and no lock is granted twice', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const [a, b] = [
      await start({ connection: clientOn(redis().port) }),
      await start({ connection: clientOn(proxy.port) }),
    ];
    const lease = await a.locks.acquire('x');
    const refusal = proxy.refuse('select', 'BUSY a script runs');
    proxy.delayMs = 20;
    proxy.cut();
    await eventually(async () => {
      expect(await b.locks.tryAcquire('x').catch(() => null)).toBeNull();
      expect(refusal.count).toBeGreaterThan(4);
    });
    refusal.allow();
    await (await eventually(() => b.locks.acquire('y', { waitMs: 1_000 }), 10_000)).release();
    expect(await b.locks.tryAcquire('x', { attemptTimeoutMs: 10_000 })).toBeNull();
    expect(await admin().keys('*')).toEqual([]);
    expect(await lease.verify()).toBe(true);
  });

  it('no timer is left after its connections are closed', async () => {
    using timers = new OwnTimers();
    const { locks } = await start({ connection: clientOn(redis().port) });
    await (await locks.acquire('x')).release();
    await locks.shutdown(0);
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect([...timers.left.values()]).toEqual([]);
  });
});
