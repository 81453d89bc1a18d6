// Defects that were reproduced in other lock packages (see the comparison in the docs), where no other file has them.
import { eventually, untilAborted } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('defects of peers', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('a failed renewal is no unhandled rejection', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listen);
    try {
      const lease = await locks.acquire('x', { leaseMs: 300 });
      proxy.blackHole('toServer');
      proxy.cut();
      await untilAborted(lease.signal);
      await new Promise(setImmediate);
    } finally {
      process.off('unhandledRejection', listen);
      proxy.heal();
    }
    expect(unhandled).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['renewalFailed', 'lost']));
  });

  it('a shutdown releases what it holds, and no lock of another replica', async () => {
    const [a, b] = [await start(), await start()];
    const own = a.locks.using('mine', undefined, ({ signal }) => untilAborted(signal));
    const theirs = await b.locks.acquire('theirs');
    await eventually(async () => expect(await admin().exists('lock:{mine}')).toBe(1));
    await a.locks.shutdown(0);
    await own;
    expect(await theirs.verify()).toBe(true);
    expect((await admin().keys('*')).sort()).toEqual(['lock:fence', 'lock:{theirs}']);
  });
});
