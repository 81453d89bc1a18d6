import { inspect } from 'node:util';
import { LeaseLostError, LockUnavailableError } from '../../../lib/core/api/errors.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('inspect, current, verify, extend, await using', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('inspect shows mode, holder, token, depth, TTL and waiters, and no secret', async () => {
    const [a, b] = [await start(), await start()];
    expect(await a.locks.inspect('x')).toEqual({ resource: 'x', mode: null, holders: [], ttlMs: 0, waiters: [] });
    const lease = await a.locks.acquire('x', { leaseMs: 5_000 });
    const waiting = b.locks.acquire('x');
    const state = await eventually(async () => {
      const seen = await b.locks.inspect('x');
      expect(instancesOf(seen.waiters)).toEqual([b.instanceId]);
      return seen;
    });
    expect(state).toEqual({
      resource: 'x',
      mode: 'exclusive',
      holders: [{ instanceId: a.instanceId, fencingToken: lease.fencingToken, ttlMs: state.ttlMs, depth: 1 }],
      ttlMs: state.ttlMs,
      waiters: [{ instanceId: b.instanceId, mode: 'exclusive' }],
    });
    expect(state.ttlMs).toBeGreaterThan(0);
    expect(state.ttlMs).toBeLessThanOrEqual(5_000);
    const secret = (await admin().get('lock:{x}'))!.split(/[/ ]/)[1]!;
    expect(inspect(state, { depth: 9 })).not.toContain(secret);
    await lease.release();
    await (await waiting).release();
  });

  it('inspect shows the depth of a reentrant lock, and changes nothing', async () => {
    const { locks } = await start();
    await locks.using('x', { mode: 'reentrant', watchdog: false, leaseMs: 5_000 }, async () => {
      await locks.using('x', { mode: 'reentrant' }, async () => {
        const before = await admin().pttl('lock:{x}');
        expect(await locks.inspect('x')).toMatchObject({ mode: 'reentrant', holders: [{ depth: 2 }] });
        expect(await admin().pttl('lock:{x}')).toBeLessThanOrEqual(before);
      });
    });
  });

  it('current is the innermost lease of this async context, and nobody else’s', async () => {
    const { locks } = await start();
    expect(locks.current()).toBeUndefined();
    await locks.using('x', undefined, async (outer) => {
      expect(locks.current()).toBe(outer);
      await locks.using('y', undefined, async (inner) => {
        expect(locks.current()).toBe(inner);
        expect(locks.current('x')).toBe(outer);
        expect(locks.current('z')).toBeUndefined();
      });
      const other = await start();
      expect(other.locks.current()).toBeUndefined();
    });
    expect(locks.current()).toBeUndefined();
  });

  it('verify asks Redis: a deleted lock is a lost lease', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('x');
    expect(await lease.verify()).toBe(true);
    await admin().del('lock:{x}');
    expect(lease.isHeld()).toBe(true); // the local deadline cannot know
    expect(await lease.verify()).toBe(false);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'takenOver' });
  });

  it('verify without an answer is an error, and the lease lives on', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url, defaults: { attemptTimeoutMs: 50 } });
    const lease = await locks.acquire('x');
    proxy.blackHole('toClient', 'commands');
    await expect(lease.verify()).rejects.toBeInstanceOf(LockUnavailableError);
    await expect(locks.inspect('x')).rejects.toBeInstanceOf(LockUnavailableError);
    expect(lease.isHeld()).toBe(true);
    proxy.heal();
    expect(await eventually(() => lease.verify())).toBe(true);
  });

  it('extend makes the lease longer, in Redis and here, and the watchdog keeps to it', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('x', { leaseMs: 5_000, watchdog: false });
    await lease.extend(60_000);
    expect(await admin().pttl('lock:{x}')).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeLessThan(await admin().pttl('lock:{x}'));
    await lease.extend(1_000);
    expect(await admin().pttl('lock:{x}')).toBeLessThanOrEqual(1_000);
    expect(lease.remainingMs()).toBeLessThanOrEqual(1_000);
  });

  it('extend of a lock that was taken over is a LeaseLostError and prolongs nothing', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x');
    await admin().del('lock:{x}');
    const next = await b.locks.acquire('x', { leaseMs: 5_000, watchdog: false });
    expect(await rejection(lease.extend(60_000))).toBeInstanceOf(LeaseLostError);
    expect(await admin().pttl('lock:{x}')).toBeLessThanOrEqual(5_000);
    expect(await next.verify()).toBe(true);
  });

  it('await using releases at the end of the block, also when it throws', async () => {
    const { locks } = await start();
    const work = async (): Promise<void> => {
      await using lease = await locks.acquire(['x', 'y']);
      expect(await lease.verify()).toBe(true);
      throw new Error('business');
    };
    await expect(work()).rejects.toThrow('business');
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });
});
