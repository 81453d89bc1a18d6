import { InvalidLockOptionsError, LockBusyError, LockTimeoutError } from '../../lib/core/api/errors.js';
import type { LockOptions } from '../../lib/core/api/lock-options.js';
import { encodeLeases } from '../../lib/core/lease/transfer-text.js';
import { TransactionScope } from '../../lib/nest/transactions/transaction-scope.js';
import { fakeForeignLock, type FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import { ourOwnerIn, useForeignWorld } from './foreign-world.js';
import { eventsOf, type Instance, type LockWorld } from '../support/world/lock-world.js';
import { track } from '../support/expect/tracked.js';

describe('a call that also takes the lock of another library', () => {
  let world: LockWorld;
  let server: FakeForeignServer;
  let a: Instance;
  let options: LockOptions;

  useForeignWorld({}, (here) => ({ world, server, a, options } = here));

  const ourOwner = (resource: string) => ourOwnerIn(world, resource);

  it('has both, ours first, and tells of one lease', async () => {
    const lease = await a.locks.acquire('stock', options);
    expect(server.names()).toEqual(['acquire']);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire']);
    expect(server.ownerOf('old:stock')).toBeDefined();
    expect(eventsOf(a, 'acquired')).toHaveLength(1);
    await lease.release();
    expect([server.ownerOf('old:stock'), ourOwner('stock')]).toEqual([undefined, undefined]);
    expect(eventsOf(a, 'released')).toHaveLength(1);
  });

  it('takes none where the old code has none', async () => {
    const alsoLock = fakeForeignLock(server, { key: (name) => (name === 'stock' ? 'x' : undefined) });
    const lease = await a.locks.acquire('new', { alsoLock });
    expect([server.names(), server.open]).toEqual([[], 0]);
    await lease.release();
  });

  it('waits for an old holder by its TTL, in pauses that are neither a storm nor too long', async () => {
    server.put('old:stock', 'an old pod', 5_000);
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(4_900);
    expect(lease.state).toBe('pending');
    // One question in 100 to 125 ms: an old pod may release early.
    expect(server.commands.length).toBeGreaterThan(35);
    expect(server.commands.length).toBeLessThanOrEqual(50);
    await world.clock.advance(250);
    expect(lease.value.isHeld()).toBe(true);
    // Ours was renewed meanwhile, and is held for its full length.
    expect(eventsOf(a, 'acquired')[0]!.waitedMs).toBeGreaterThanOrEqual(5_000);
  });

  it('notices an early release within a moment', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(1_000);
    server.delete('old:stock');
    await world.clock.advance(126);
    expect(lease.state).toBe('fulfilled');
  });

  it('is woken where the other library tells of a release, and asks rarely before', async () => {
    options = { alsoLock: fakeForeignLock(server, { wakesUp: true }) };
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(3_000);
    expect(server.commands.length).toBeLessThanOrEqual(4);
    server.delete('old:stock');
    await world.clock.advance(0);
    expect(lease.state).toBe('fulfilled');
  });

  it('is not driven to a storm by wake-ups that are wrong', async () => {
    options = { alsoLock: fakeForeignLock(server, { wakesUp: true }) };
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', { ...options, waitMs: 500 }));
    for (let i = 0; i < 500; i++) {
      server.wakeAll();
      await world.clock.advance(1);
    }
    await world.clock.advance(1);
    expect(lease.error).toBeInstanceOf(LockTimeoutError);
    expect(server.commands.length).toBeLessThanOrEqual(101);
  });

  it('fails after waitMs, says which lock is in the way, and leaves ours free', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', { ...options, waitMs: 1_000 }));
    await world.clock.advance(1_001);
    expect(lease.error).toBeInstanceOf(LockTimeoutError);
    const { message, foreignHolder } = lease.error as LockTimeoutError;
    expect(message).toMatch(
      /"stock" is held by the lock "old:stock" of oldlock \(alsoLock\), which has 59(\.\d)? s left/,
    );
    expect(foreignHolder).toEqual({ library: 'oldlock', key: 'old:stock', ttlMs: expect.any(Number) });
    expect(ourOwner('stock')).toBeUndefined();
    expect(server.ownerOf('old:stock')).toBe('an old pod');
    expect(eventsOf(a, 'acquired')).toEqual([]);
    expect(eventsOf(a, 'lost')).toEqual([]);
    expect(eventsOf(a, 'notAcquired')).toHaveLength(1);
    expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0, orphanReleases: 0 });
  });

  it('fails at once where it may not wait', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const busy = await a.locks.acquire('stock', { ...options, waitMs: 0 }).catch((error: unknown) => error);
    expect(busy).toBeInstanceOf(LockBusyError);
    expect((busy as LockBusyError).foreignHolder).toMatchObject({ library: 'oldlock' });
    expect((busy as LockBusyError).retryAfterMs).toBe(60_000);
    expect(await a.locks.tryAcquire('stock', options)).toBeNull();
    expect(await a.locks.tryUsing('stock', options, () => 1)).toEqual({ ran: false });
    expect(server.names()).toEqual(['acquire', 'acquire', 'acquire']);
    expect(ourOwner('stock')).toBeUndefined();
  });

  it('waits for no end of a lock without one', async () => {
    server.put('old:stock', 'an old pod', Infinity);
    const busy = await a.locks.acquire('stock', { ...options, waitMs: 0 }).catch((error: unknown) => error);
    expect((busy as Error).message).toContain('which has no end');
    expect((busy as LockBusyError).retryAfterMs).toBe(0);
  });

  it('ends its wait when the caller gives up, and at the shutdown', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const caller = new AbortController();
    const given = track(a.locks.acquire('stock', { ...options, signal: caller.signal }));
    await world.clock.advance(500);
    caller.abort();
    await world.clock.advance(0);
    expect(given.error).toMatchObject({ code: 'LOCK_ABORTED' });
    const closing = track(a.locks.acquire('stock', options));
    await world.clock.advance(500);
    const closed = track(a.locks.shutdown(10_000));
    await world.clock.advance(300);
    expect(closing.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect([closed.state, server.open, ourOwner('stock')]).toEqual(['fulfilled', 0, undefined]);
  });

  it('lets the other calls of its process wait behind it, and asks once for all of them', async () => {
    server.put('old:stock', 'an old pod', 1_000);
    const order: number[] = [];
    const calls = [1, 2, 3].map((number) =>
      track(a.locks.using('stock', options, async () => void order.push(number))),
    );
    const b = world.instance('b');
    const elsewhere = track(b.locks.acquire('stock', { ...options, waitMs: 500 }));
    await world.clock.advance(600);
    // Process b waits for ours, and does not ask the old Redis at all.
    expect(elsewhere.error).not.toMatchObject({ foreignHolder: expect.anything() });
    expect(elsewhere.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(new Set(server.commands.map(({ owner }) => owner)).size).toBe(1);
    await world.clock.advance(2_000);
    expect(order).toEqual([1, 2, 3]);
    expect(calls.every(({ state }) => state === 'fulfilled')).toBe(true);
    expect(server.ownerOf('old:stock')).toBeUndefined();
  });

  it('never passes theirs on in memory: a call without it gets ours only', async () => {
    const lease = await a.locks.acquire('stock', options);
    const without = track(a.locks.acquire('stock'));
    const withIt = track(a.locks.acquire('stock', options));
    await lease.release();
    await world.clock.advance(1);
    expect(without.value.isHeld()).toBe(true);
    expect(server.ownerOf('old:stock')).toBeUndefined();
    const first = server.commands[0]!.owner;
    await without.value.release();
    await world.clock.advance(1);
    expect(withIt.value.isHeld()).toBe(true);
    expect(server.ownerOf('old:stock')).not.toBe(first);
    expect(server.names()).toEqual(['acquire', 'release', 'acquire']);
  });

  it('is a default of the module, for exclusive and reentrant locks only', async () => {
    const b = world.instance('b', { defaults: options });
    for (const mode of ['exclusive', 'reentrant'] as const) await (await b.locks.acquire('stock', { mode })).release();
    await b.locks.using('stock', undefined, () => {});
    expect(server.names()).toEqual(['acquire', 'release', 'acquire', 'release', 'acquire', 'release']);
    for (const mode of ['read', 'write'] as const) await (await b.locks.acquire('page', { mode })).release();
    await (await b.locks.semaphore('permits', { permits: 2 }).acquire()).release();
    const leader = b.locks.campaign('boss');
    await leader.whenElected();
    await leader.resign();
    expect(server.commands).toHaveLength(6);
  });

  it('is refused before anything is sent where it cannot be right', async () => {
    const refused = async (call: () => unknown): Promise<string> => {
      const error = await Promise.resolve()
        .then(call)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect((error as InvalidLockOptionsError).option).toBe('alsoLock');
      return (error as Error).message;
    };
    const { locks } = a;
    expect(await refused(() => locks.acquire('x', { ...options, mode: 'read' }))).toMatch(
      /exclusive and reentrant, not 'read'/,
    );
    await refused(() => locks.acquire('x', { ...options, mode: 'write' }));
    expect(await refused(() => locks.acquire('x', { alsoLock: 'redlock' as never }))).toMatch(
      /nestjs-redis-lock\/migration/,
    );
    await refused(() => locks.semaphore('x', { permits: 1 }).acquire(options as never));
    await refused(() => locks.campaign('x', options as never));
    const b = world.instance('b', { defaults: options });
    const text = encodeLeases([
      { resource: 'stock', id: 'b/x/y', mode: 'exclusive', fencingToken: 1, leaseMs: 1_000, minHoldMs: 0 } as never,
    ]);
    expect(await refused(() => b.locks.adopt(text))).toMatch(/"stock" cannot be adopted/);
    expect([a.store.commands, b.store.commands, server.commands]).toEqual([[], [], []]);
    const lease = await locks.acquire('stock', options);
    expect(await refused(() => lease.transfer())).toMatch(/stays with this process/);
    expect(lease.isHeld()).toBe(true);
  });

  it('passes on what the key function of the user throws', async () => {
    const alsoLock = fakeForeignLock(server, {
      key: () => {
        throw new Error('no such tenant');
      },
    });
    await expect(a.locks.acquire('stock', { alsoLock })).rejects.toThrow('no such tenant');
    expect(a.store.commands).toEqual([]);
  });

  it('takes theirs once in reentrant mode, by the outermost entry', async () => {
    const reentrant = { ...options, mode: 'reentrant' } as const;
    await a.locks.using('stock', reentrant, async () => {
      await a.locks.using('stock', reentrant, async () => {
        expect(server.names()).toEqual(['acquire']);
      });
      expect(server.names()).toEqual(['acquire']);
      await a.locks.using('stock', { mode: 'reentrant' }, async () => {});
    });
    expect(server.names()).toEqual(['acquire', 'release']);
  });

  it('cannot be added by an inner entry', async () => {
    await a.locks.using('stock', { mode: 'reentrant' }, async () => {
      await expect(a.locks.acquire('stock', { ...options, mode: 'reentrant' })).rejects.toThrow(
        /without the lock of oldlock that this call wants too/,
      );
    });
    expect(server.commands).toEqual([]);
  });

  it('cannot be added by a later call of the same database transaction, which has the lease of the first', async () => {
    const transactions = new TransactionScope();
    const b = world.instance('b', { transactions });
    const use = (given?: LockOptions) => b.locks.using('stock', given, async () => server.names());
    await transactions.run(async () => {
      await use();
      await expect(use(options)).rejects.toThrow(/without the lock of oldlock that this call wants too/);
      expect(ourOwner('stock')).toBeDefined();
    });
    expect(server.commands).toEqual([]);
    await transactions.run(async () => {
      expect(await use(options)).toEqual(['acquire']);
      expect(await use(options)).toEqual(['acquire']);
    });
    expect(server.names()).toEqual(['acquire', 'release']);
  });

  it('takes several resources with the lock of each, all or nothing', async () => {
    const lease = await a.locks.acquire(['b', 'a'], options);
    expect([server.ownerOf('old:a'), server.ownerOf('old:b')]).not.toContain(undefined);
    await lease.release();
    expect([server.ownerOf('old:a'), server.ownerOf('old:b')]).toEqual([undefined, undefined]);
    server.put('old:b', 'an old pod', 60_000);
    const failed = track(a.locks.acquire(['b', 'a'], { ...options, waitMs: 1_000 }));
    await world.clock.advance(1_100);
    expect(failed.error).toMatchObject({ code: 'LOCK_TIMEOUT', foreignHolder: { key: 'old:b' } });
    expect(server.ownerOf('old:a')).toBeUndefined();
    expect([ourOwner('a'), ourOwner('b')]).toEqual([undefined, undefined]);
  });
});
