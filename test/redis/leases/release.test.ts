import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { RELEASE } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('release only by the owner', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('frees the lock, and a second release does not even ask Redis', async () => {
    const { locks, events } = await start();
    const lease = await locks.acquire('a');
    await lease.release();
    await resetCounts(admin());
    await lease.release();
    expect((await commandCounts(admin())).evalsha).toBeUndefined();
    expect(await admin().exists('lock:{a}')).toBe(0);
    expect(events.filter(({ type }) => type === 'released')).toHaveLength(1);
  });

  it('a foreign owner id frees nothing and renews nothing', async () => {
    const { locks, store } = await start();
    const lease = await locks.acquire('a', { leaseMs: 5_000 });
    const thief = { resource: 'a', id: `${store.clientId}/guessed`, mode: 'exclusive' } as const;
    expect(await store.release(thief)).toBe(false);
    expect(await store.renew(thief, 60_000)).toBe(false);
    expect(await store.verify(thief)).toBe(false);
    expect(await store.setDepth(thief, 5, 60_000)).toBe(false);
    expect(await admin().pttl('lock:{a}')).toBeLessThanOrEqual(5_000);
    expect(await lease.verify()).toBe(true);
  });

  it('a lease that was lost is released without touching the lock of the next holder, and says so', async () => {
    const [a, b] = [await start(), await start()];
    const lost = await a.locks.acquire('x', { leaseMs: 100, watchdog: false });
    const next = await b.locks.acquire('x');
    await lost.release();
    expect(await next.verify()).toBe(true);
    expect(a.events.map(({ type }) => type)).toEqual(['acquired', 'lost', 'releasedAfterLoss']);
  });

  it('a holder that was stopped past its lease releases nobody else’s lock', async () => {
    const stopped = await startProcess(300);
    await stopped.ask('acquire', 'x');
    const onContinue = stopped.ask('stop', 'x');
    const { locks } = await start();
    const next = await locks.acquire('x');
    expect(await stopped.continue(onContinue)).toMatchObject({ isHeld: false });
    await stopped.ask('release', 'x');
    expect(await next.verify()).toBe(true);
  });

  it('a lock that an operator deleted and somebody else took is not released', async () => {
    const [a, b] = [await start(), await start()];
    const deleted = await a.locks.acquire('x');
    await admin().del('lock:{x}');
    const next = await b.locks.acquire('x');
    await deleted.release();
    expect(await next.verify()).toBe(true);
    expect(a.events.at(-1)).toMatchObject({ type: 'lost', reason: 'takenOver' });
  });

  it('a release whose reply is lost is sent again until it is answered', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    await (await locks.acquire('warm-up')).release();
    const lease = await locks.acquire('x');
    await resetCounts(admin());
    const lost = proxy.loseReplyTo(RELEASE.sha);
    await expect(lease.release()).rejects.toBeInstanceOf(LockUnavailableError);
    await lost;
    expect(events.at(-1)).toMatchObject({ type: 'releaseFailed' });
    // Meanwhile the lock is somebody else's, and the second release leaves it alone.
    const next = await (await start()).locks.acquire('x');
    const expected = 3; // the lost release, the acquire, and the release again
    await eventually(async () => expect((await commandCounts(admin())).evalsha).toBeGreaterThanOrEqual(expected));
    expect(await next.verify()).toBe(true);
  });

  it('a release that never reached Redis frees the lock in the background', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url });
    const lease = await locks.acquire('x', { leaseMs: 60_000 });
    proxy.blackHole('toServer', 'commands');
    const outcome = rejection(lease.release());
    proxy.cut();
    expect(await outcome).toBeInstanceOf(LockUnavailableError);
    expect(await admin().exists('lock:{x}')).toBe(1);
    proxy.heal();
    await eventually(async () => expect(await admin().exists('lock:{x}')).toBe(0));
  });

  it('await using releases at the end of the block, and a failing release does not throw there', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    {
      await using lease = await locks.acquire('x');
      expect(lease.isHeld()).toBe(true);
    }
    expect(await admin().exists('lock:{x}')).toBe(0);
    {
      await using _lease = await locks.acquire('x');
      proxy.cut();
    }
    expect(events.at(-1)).toMatchObject({ type: 'releaseFailed' });
    await eventually(async () => expect(await admin().exists('lock:{x}')).toBe(0));
  });
});
