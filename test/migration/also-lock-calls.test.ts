import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { InvalidLockOptionsError, LockTimeoutError, LockUnavailableError } from '../../lib/core/api/errors.js';
import type { ForeignClaim, ForeignLock } from '../../lib/core/api/foreign-lock.js';
import { LockReentryError } from '../../lib/core/api/lease-errors.js';
import type { LockOptions } from '../../lib/core/api/lock-options.js';
import { TransactionScope } from '../../lib/nest/transactions/transaction-scope.js';
import { fakeForeignLock, type FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import { useForeignWorld } from './foreign-world.js';
import { type Instance, type LockWorld } from '../support/world/lock-world.js';
import { track } from '../support/expect/tracked.js';

describe('calls that also take the lock of another library', () => {
  let world: LockWorld;
  let server: FakeForeignServer;
  let a: Instance;
  let options: LockOptions;

  useForeignWorld({}, (here) => ({ world, server, a, options } = here));

  /** The same lock, whose claims the test changes. */
  const withClaims = (change: (claim: ForeignClaim) => ForeignClaim, wakesUp = false): ForeignLock => {
    const lock = fakeForeignLock(server, { wakesUp });
    return {
      ...lock,
      open(context) {
        const client = lock.open(context);
        return { ...client, claim: (key) => change(client.claim(key)) };
      },
    };
  };

  it('ask for it in their own async context, whatever call passes ours on', async () => {
    const request = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const alsoLock = withClaims((claim) => ({
      ...claim,
      tryAcquire(leaseMs, signal) {
        seen.push(request.getStore());
        return claim.tryAcquire(leaseMs, signal);
      },
    }));
    const lease = await request.run('first', () => a.locks.acquire('stock', { alsoLock }));
    const second = track(request.run('second', () => a.locks.acquire('stock', { alsoLock })));
    await request.run('first', () => lease.release());
    await world.clock.advance(1);
    expect(second.value.isHeld()).toBe(true);
    expect(seen).toEqual(['first', 'second']);
  });

  it('leave no listener on a shutdown or a signal where the lock cannot be opened', async () => {
    const alsoLock: ForeignLock = {
      ...fakeForeignLock(server),
      open() {
        throw new Error('no such database');
      },
    };
    const { signal } = new AbortController();
    const before = getEventListeners(a.locks.closing, 'abort').length;
    await expect(a.locks.acquire('stock', { alsoLock, signal })).rejects.toThrow('no such database');
    expect(getEventListeners(a.locks.closing, 'abort')).toHaveLength(before);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(world.server.isEmpty).toBe(true);
  });

  it('are not ended by a lock that cannot tell when it is free', async () => {
    const alsoLock = withClaims((claim) => ({ ...claim, whenFree: () => Promise.reject(new Error('not allowed')) }));
    server.put('old:stock', 'an old pod', 2_000);
    const lease = track(a.locks.acquire('stock', { alsoLock }));
    await world.clock.advance(3_500);
    expect(lease.value.isHeld()).toBe(true);
    expect(server.commands.length).toBeLessThan(10);
  });

  it.each([
    ['know of the holder when their wait ends before the last question has had its time', 600, LockTimeoutError],
    ['do not when the other server has been silent for as long as one question may take', 3_000, LockUnavailableError],
  ])('%s', async (_name, waitMs, expected) => {
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', { ...options, waitMs, attemptTimeoutMs: 1_000 }));
    await world.clock.advance(100);
    expect(server.commands.length).toBeGreaterThan(0);
    server.troubles.acquire.push(...Array.from({ length: 50 }, () => ({ until: new Promise<void>(() => {}) })));
    await world.clock.advance(waitMs);
    expect(lease.error).toBeInstanceOf(expected);
    expect(server.troubles.acquire.length).toBeLessThan(50);
  });

  it('adopt what has no lock of the other library: of readers, and permits', async () => {
    const b = world.instance('b', { defaults: options });
    const page = await (await a.locks.acquire('page', { mode: 'read' })).transfer();
    await b.locks.usingAdopted(page, async () => {});
    const permit = await (await a.locks.semaphore('slots', { permits: 2 }).acquire()).transfer();
    await b.locks.usingAdopted(permit, async () => {});
    expect(server.commands).toEqual([]);
    expect(world.server.isEmpty).toBe(true);
  });

  it('are refused where they would wait for their own', async () => {
    const alsoLock = fakeForeignLock(server, { key: () => 'the only one' });
    const twice = a.locks.acquire(['a', 'b'], { alsoLock });
    await expect(twice).rejects.toThrow(InvalidLockOptionsError);
    await expect(twice).rejects.toThrow(/"a" and "b".*"the only one" of oldlock/);
    await expect(a.locks.tryUsing(['a', 'b'], { alsoLock }, () => 1)).rejects.toThrow(InvalidLockOptionsError);
    expect([a.store.commands, server.commands]).toEqual([[], []]);
    await a.locks.using('a', { alsoLock }, async () => {
      await expect(a.locks.acquire('b', { alsoLock })).rejects.toThrow(LockReentryError);
      await expect(a.locks.tryUsing('b', { alsoLock }, () => 1)).rejects.toThrow(LockReentryError);
      await expect(a.locks.acquire('b', { alsoLock })).rejects.toThrow(/"the only one" of oldlock.*"a"/);
    });
    await a.locks.using('b', { alsoLock }, async () => {});
    expect(server.ownerOf('the only one')).toBeUndefined();
  });

  it('are refused where they would wait for what their database transaction keeps', async () => {
    const alsoLock = fakeForeignLock(server, { key: () => 'the only one' });
    const transactions = new TransactionScope();
    const b = world.instance('b', { transactions });
    await transactions.run(async () => {
      await b.locks.using('a', { alsoLock }, async () => {});
      const next = track(b.locks.using('b', { alsoLock }, async () => {}));
      await world.clock.advance(1);
      const both = track(b.locks.using(['a', 'b'], { alsoLock }, async () => {}));
      await world.clock.advance(1);
      expect(next.error).toBeInstanceOf(LockReentryError);
      expect(both.error).toBeInstanceOf(InvalidLockOptionsError);
      await b.locks.using('a', { alsoLock }, async () => {});
    });
    expect([world.server.isEmpty, server.ownerOf('the only one')]).toEqual([true, undefined]);
  });
});
