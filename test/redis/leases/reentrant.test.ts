import { LeaseLostError, LockTimeoutError, LockUnavailableError } from '../../../lib/core/api/errors.js';
import { LockReentryError } from '../../../lib/core/api/reentry-error.js';
import type { SingleLease } from '../../../lib/core/lease/single-lease.js';
import { SET_DEPTH } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

const REENTRANT = { mode: 'reentrant' } as const;

describe('the reentrant mode', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const depthInRedis = async (resource = 'a'): Promise<number> => {
    const owner = await admin().hget(`lock:{${resource}}`, 'owner');
    return owner === null ? 0 : Number(await admin().hget(`lock:{${resource}}`, owner));
  };

  it('keeps the depth in the hash field named like the owner; only the last release frees it', async () => {
    const { locks } = await start();
    const tokens: number[] = [];
    await locks.using('a', REENTRANT, async ({ fencingToken }) => {
      tokens.push(fencingToken);
      const owner = (await admin().hget('lock:{a}', 'owner'))!;
      expect(await admin().hget('lock:{a}', owner)).toBe('1');
      await locks.using('a', REENTRANT, async (inner) => {
        tokens.push(inner.fencingToken);
        await locks.using('a', REENTRANT, async () => expect(await admin().hget('lock:{a}', owner)).toBe('3'));
        expect(await admin().hget('lock:{a}', owner)).toBe('2');
      });
      expect(await admin().hget('lock:{a}', owner)).toBe('1');
      expect(await admin().hget('lock:{a}', 'owner')).toBe(owner);
    });
    expect(tokens[1]).toBe(tokens[0]);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('siblings in Promise.all share the lock, and count as many times as they are', async () => {
    const { locks } = await start();
    await locks.using('a', REENTRANT, async () => {
      const leases = await Promise.all(Array.from({ length: 5 }, () => locks.acquire('a', REENTRANT)));
      expect(await depthInRedis()).toBe(6);
      await Promise.all(leases.map((lease) => lease.release()));
      expect(await depthInRedis()).toBe(1);
    });
    expect(await depthInRedis()).toBe(0);
  });

  it('a command that is sent again never counts twice', async () => {
    const { store } = await start();
    const owner = { resource: 'a', id: `${store.clientId}/secret`, mode: 'reentrant' } as const;
    for (let i = 0; i < 2; i++) await store.acquire(owner, 5_000);
    expect(await depthInRedis()).toBe(1);
    for (let i = 0; i < 3; i++) expect(await store.setDepth(owner, 2, 5_000)).toBe(true);
    expect(await depthInRedis()).toBe(2);
    expect(await store.release(owner)).toBe(true);
    expect(await store.release(owner)).toBe(false);
    expect(await depthInRedis()).toBe(0);
  });

  it('an entry whose reply is lost is counted once when it is tried again', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url });
    await locks.using('a', REENTRANT, async () => {
      await (await locks.acquire('a', REENTRANT)).release(); // Redis knows the script now
      const lost = proxy.loseReplyTo(SET_DEPTH.sha);
      await expect(locks.acquire('a', REENTRANT)).rejects.toBeInstanceOf(LockUnavailableError);
      await lost;
      const inner = await eventually(() => locks.acquire('a', REENTRANT));
      expect(await depthInRedis()).toBe(2);
      await inner.release();
      expect(await depthInRedis()).toBe(1);
    });
    await eventually(async () => expect(await depthInRedis()).toBe(0));
  });

  it('a leave whose reply is lost does not keep the lock: the last release frees it', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url, defaults: { leaseMs: 60_000 } });
    await locks.using('a', REENTRANT, async () => {
      const inner = await locks.acquire('a', REENTRANT);
      const lost = proxy.loseReplyTo(SET_DEPTH.sha);
      await inner.release();
      await lost;
    });
    await eventually(async () => expect(await admin().exists('lock:{a}')).toBe(0));
  });

  it('reentrant and exclusive holders of one resource exclude each other', async () => {
    const [a, b] = [await start(), await start()];
    const reentrant = await a.locks.acquire('x', REENTRANT);
    expect(await b.locks.tryAcquire('x')).toBeNull();
    expect(await b.locks.tryAcquire('x', REENTRANT)).toBeNull();
    await reentrant.release();
    const exclusive = await a.locks.acquire('x');
    expect(await b.locks.tryAcquire('x', REENTRANT)).toBeNull();
    await exclusive.release();
    expect(await b.locks.tryAcquire('x', REENTRANT)).not.toBeNull();
  });

  it('a release by a foreign context is refused, and frees nothing', async () => {
    const { locks } = await start();
    let leaked: SingleLease | undefined;
    let finish = (): void => {};
    const entered = new Promise<void>((resolve) => {
      void locks.using('a', REENTRANT, (lease) => {
        leaked = lease as SingleLease;
        resolve();
        return new Promise<void>((end) => (finish = end));
      });
    });
    await entered;
    await expect(leaked!.release()).rejects.toBeInstanceOf(LockReentryError);
    expect(await leaked!.verify()).toBe(true);
    finish();
    await eventually(async () => expect(await admin().exists('lock:{a}')).toBe(0));
  });

  it('un-awaited work that outlives the lease does not enter again', async () => {
    const { locks } = await start();
    let late: Promise<unknown> | undefined;
    let go = (): void => {};
    const started = new Promise<void>((resolve) => (go = resolve));
    await locks.using('a', REENTRANT, async () => {
      late = started.then(() => locks.acquire('a', { ...REENTRANT, waitMs: 500 }));
    });
    const other = await (await start()).locks.acquire('a');
    go();
    expect(await rejection(late!)).toBeInstanceOf(LockTimeoutError);
    expect(await other.verify()).toBe(true);
  });

  it('does not enter a lock that was taken over meanwhile', async () => {
    const { locks } = await start();
    await locks.using('a', { ...REENTRANT, leaseMs: 60_000 }, async (lease) => {
      await admin().del('lock:{a}');
      await expect(locks.acquire('a', REENTRANT)).rejects.toBeInstanceOf(LeaseLostError);
      expect(lease.isHeld()).toBe(false);
      expect(await admin().exists('lock:{a}')).toBe(0);
    });
  });

  it('an exclusive lock that waits for itself is told so at once', async () => {
    const { locks } = await start();
    await locks.using('a', undefined, async () => {
      await expect(locks.acquire('a', { waitMs: Infinity })).rejects.toBeInstanceOf(LockReentryError);
      await expect(locks.acquire('a', REENTRANT)).rejects.toBeInstanceOf(LockReentryError);
      expect(await locks.tryAcquire('a')).toBeNull();
    });
  });
});
