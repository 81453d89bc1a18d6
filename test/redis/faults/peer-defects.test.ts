// Defects that were reproduced in other lock packages (see the comparison in the docs), where no other file has them.
import { LockBusyError, LockTimeoutError } from '../../../lib/core/api/errors.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
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

  it('the result of the work survives a release that fails', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    const order = { id: 42 };
    const result = await locks.using('x', undefined, () => {
      proxy.cut();
      return order;
    });
    expect(result).toBe(order);
    const business = new Error('out of stock');
    const work = (): never => {
      proxy.cut();
      throw business;
    };
    expect(await rejection(eventually(() => locks.acquire('y')).then(() => locks.using('z', undefined, work)))).toBe(
      business,
    );
    expect(events.filter(({ type }) => type === 'releaseFailed')).toHaveLength(2);
  });

  it('a waiter that timed out does not release the lock of the holder, nor does its next job enter it', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x');
    for (let i = 0; i < 3; i++) {
      expect(await rejection(b.locks.acquire('x', { waitMs: 300 }))).toBeInstanceOf(LockTimeoutError);
      expect(await b.locks.tryAcquire('x', { mode: 'reentrant' })).toBeNull();
    }
    expect(await lease.verify()).toBe(true);
  });

  it('a nested call of the same key does not wait for itself for ever', async () => {
    const { locks } = await start();
    const nested = locks.using('x', undefined, () => locks.using('x', { waitMs: Infinity }, () => 'never'));
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('the renewal does not outlive the release', async () => {
    const { locks } = await start();
    const released = await locks.acquire('x', { leaseMs: 600 });
    await eventually(async () => expect((await commandCounts(admin())).pexpire).toBeGreaterThan(2));
    await released.release();
    const lease = await locks.acquire('x', { leaseMs: 5_000, watchdog: false });
    await resetCounts(admin());
    const later = performance.now() + 300;
    await eventually(() => expect(performance.now()).toBeGreaterThan(later));
    expect((await commandCounts(admin())).evalsha).toBeUndefined();
    expect(await lease.verify()).toBe(true);
  });

  it('one waiter that leaves does not take the wake-ups of the others with it', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x', { leaseMs: 60_000 });
    const impatient = rejection(b.locks.acquire('x', { waitMs: 300 }));
    const patient = b.locks.acquire('x', { waitMs: 60_000 });
    expect(await impatient).toBeInstanceOf(LockTimeoutError);
    await eventually(async () => expect(instancesOf((await a.locks.inspect('x')).waiters)).toEqual([b.instanceId]));
    await lease.release();
    expect((await patient).isHeld()).toBe(true);
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

  it('a busy lock is no error to tryAcquire, and a typed one to acquire', async () => {
    const [a, b] = [await start(), await start()];
    await a.locks.acquire('x');
    expect(await b.locks.tryAcquire('x')).toBeNull();
    expect(await rejection(b.locks.acquire('x', { waitMs: 0 }))).toBeInstanceOf(LockBusyError);
  });
});
