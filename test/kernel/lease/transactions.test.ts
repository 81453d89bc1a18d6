import { LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { TransactionScope } from '../../../lib/features/transactions/nest/transaction-scope.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('a lock that is acquired inside of a transaction', () => {
  let world: LockWorld;
  let scope: TransactionScope;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    scope = new TransactionScope();
    a = world.instance('a', { transactions: scope });
    b = world.instance('b', { transactions: scope });
  });

  const isFree = async (resource = 'stock') => (await b.locks.inspect(resource)).mode === null;
  const sell = (resource = 'stock') => a.locks.using(resource, undefined, async () => 'sold');

  it.each([
    ['using', (): Promise<unknown> => sell()],
    ['using, of several resources', () => a.locks.using(['stock', 'price'], undefined, async () => {})],
    ['tryUsing', () => a.locks.tryUsing('stock', async () => {})],
    ['a semaphore', () => a.locks.semaphore('stock', { permits: 1 }).using(async () => {})],
    ['tryUsing of a semaphore', () => a.locks.semaphore('stock', { permits: 1 }).tryUsing(async () => {})],
  ])('is released when the transaction has been committed, and not before: %s', async (_, lock) => {
    const commit = gate();
    const transaction = track(
      scope.run(async () => {
        await lock();
        await commit.opened;
      }),
    );
    await settle();
    expect(await isFree()).toBe(false);
    commit.open();
    await settle();
    expect(transaction.state).toBe('fulfilled');
    expect(await isFree()).toBe(true);
    expect(world.server.isEmpty).toBe(true);
  });

  it('is released after a rollback, and the error passes through', async () => {
    const error = new RangeError('out of stock');
    const transaction = scope.run(async () => {
      await sell();
      expect(await isFree()).toBe(false);
      throw error;
    });
    await expect(transaction).rejects.toBe(error);
    expect(await isFree()).toBe(true);
  });

  it('is released at once without a transaction, by a lease of acquire(), and after the transaction has ended', async () => {
    await sell();
    expect(await isFree()).toBe(true);
    const ended = gate();
    let late: Promise<void> | undefined;
    await scope.run(async () => {
      await (await a.locks.acquire('stock')).release();
      expect(await isFree()).toBe(true);
      late = ended.opened.then(async () => void (await sell()));
    });
    ended.open();
    await late;
    expect(await isFree()).toBe(true);
  });

  it('work that outlives its transaction releases when it ends', async () => {
    const work = gate();
    let running: Promise<unknown> | undefined;
    await scope.run(async () => {
      running = a.locks.using('stock', undefined, () => work.opened);
      await settle();
    });
    expect(await isFree()).toBe(false);
    work.open();
    await running;
    expect(await isFree()).toBe(true);
  });

  it('is released if the transaction has ended while the call timed out on the others', async () => {
    const price = await b.locks.acquire('price');
    let waiting: Promise<unknown> | undefined;
    await scope.run(async () => {
      await sell();
      waiting = a.locks.using(['stock', 'price'], { waitMs: 1_000 }, async () => {}).catch((error: unknown) => error);
      await settle();
    });
    await world.clock.advance(1_001);
    expect(await waiting).toBeInstanceOf(LockTimeoutError);
    await settle();
    expect(await isFree()).toBe(true);
    await price.release();
  });

  it('the next holder is granted only after the commit', async () => {
    const commit = gate();
    const order: string[] = [];
    const transaction = scope
      .run(async () => {
        await sell();
        await commit.opened;
        order.push('commit');
      })
      .then(() => order.push('ended'));
    await settle();
    const next = b.locks.using('stock', undefined, async () => void order.push('next'));
    await world.clock.advance(5_000);
    expect(order).toEqual([]);
    commit.open();
    await Promise.all([transaction, next]);
    expect(order[0]).toBe('commit');
    expect(order).toContain('next');
  });

  it('the watchdog renews it until then; maxHoldMs ends it, and its signal aborts', async () => {
    const commit = gate();
    const leases: Lease[] = [];
    const transaction = scope.run(async () => {
      await a.locks.using('stock', undefined, async (lease) => void leases.push(lease));
      await a.locks.using('price', { maxHoldMs: 2 * LOCK_DEFAULTS.leaseMs }, async (lease) => void leases.push(lease));
      await commit.opened;
    });
    await world.clock.advance(3 * LOCK_DEFAULTS.leaseMs);
    const [stock, price] = leases as [Lease, Lease];
    expect([stock.isHeld(), price.isHeld()]).toEqual([true, false]);
    expect(price.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'maxHold' });
    expect([await isFree('stock'), await isFree('price')]).toEqual([false, true]);
    commit.open();
    await transaction;
    expect(await isFree()).toBe(true);
  });

  it('a shutdown waits for the transaction, up to drainMs', async () => {
    const commit = gate();
    const transaction = scope.run(async () => {
      await sell();
      await commit.opened;
    });
    await settle();
    const shutdown = track(a.locks.shutdown(10_000));
    await world.clock.advance(5_000);
    expect(shutdown.state).toBe('pending');
    commit.open();
    await transaction;
    await settle();
    expect(shutdown.state).toBe('fulfilled');
    expect(eventsOf(a, 'released')).toMatchObject([{ resource: 'stock' }]);
  });

  it('a transaction that never ends does not keep a shutdown longer than drainMs', async () => {
    void scope.run(async () => {
      await sell();
      await new Promise(() => {});
    });
    await settle();
    const shutdown = track(a.locks.shutdown(10_000));
    await world.clock.advance(11_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'shutdown' }]);
  });

  describe('that is acquired again in the same transaction', () => {
    it('is the same lease, with the same token and no command', async () => {
      const tokens: number[] = [];
      const lock = (options = {}) =>
        a.locks.using('stock', options, async ({ fencingToken }) => void tokens.push(fencingToken));
      await scope.run(async () => {
        await lock();
        await lock();
        expect(await a.locks.tryUsing('stock', async () => 'again')).toEqual({ ran: true, value: 'again' });
      });
      expect(tokens[0]).toBe(tokens[1]);
      expect(a.store.sent('acquire')).toHaveLength(1);
      expect(a.store.sent('release')).toHaveLength(1);
    });

    it('takes the missing ones of several resources, and keeps all of them', async () => {
      await scope.run(async () => {
        await sell('price');
        const resources = await a.locks.using(['stock', 'price', 'log'], undefined, async (lease) => {
          lease.assertHeld();
          return lease.resources;
        });
        expect(resources).toEqual(['log', 'price', 'stock']);
        expect(a.store.sent('acquire')).toHaveLength(3);
        expect([await isFree('log'), await isFree('price'), await isFree('stock')]).toEqual([false, false, false]);
      });
      expect(world.server.isEmpty).toBe(true);
    });

    it('keeps its resources if the others are busy', async () => {
      const other = await b.locks.acquire('price');
      await scope.run(async () => {
        await sell('stock');
        const busy = a.locks.using(['stock', 'price'], { waitMs: 0 }, async () => {});
        await expect(busy).rejects.toMatchObject({ code: 'LOCK_BUSY' });
        expect(await a.locks.tryUsing(['stock', 'price'], async () => {})).toEqual({ ran: false });
        expect(await isFree('stock')).toBe(false);
      });
      await other.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('uses a permit of a semaphore again; more than it holds are refused', async () => {
      const exports = a.locks.semaphore('exports', { permits: 2 });
      await scope.run(async () => {
        await exports.using(async () => {});
        await exports.using(async () => {});
        expect(await exports.available()).toBe(1);
        const two = exports.using({ count: 2 }, async () => {});
        await expect(two).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      });
      expect(world.server.isEmpty).toBe(true);
    });

    it.each([
      ['by acquire(), which would release it before the commit', () => a.locks.acquire('stock')],
      ['in another mode', () => a.locks.using('stock', { mode: 'write' }, async () => {})],
    ])('is refused instead of waiting for itself: %s', async (_, again) => {
      await scope.run(async () => {
        await sell();
        await expect(again()).rejects.toMatchObject({ code: 'LOCK_REENTRY', resource: 'stock' });
        expect(await isFree()).toBe(false);
      });
      expect(world.server.isEmpty).toBe(true);
    });

    it('by a second call at the same time is refused, because it would wait for the end of the transaction', async () => {
      await scope.run(async () => {
        const [first, second] = await Promise.allSettled([sell(), sell()]);
        expect(first).toEqual({ status: 'fulfilled', value: 'sold' });
        expect(second).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_REENTRY' } });
        expect(await sell()).toBe('sold');
      });
    });

    it('a reentrant lock is entered again, and kept by its outer entry', async () => {
      const enter = <T>(work: () => Promise<T>) => a.locks.using('stock', { mode: 'reentrant' }, work);
      await scope.run(async () => {
        await enter(() => enter(async () => {}));
        expect(await isFree()).toBe(false);
        await enter(async () => {});
      });
      expect(world.server.isEmpty).toBe(true);
    });

    it('is refused once the lease is lost, so that the transaction is rolled back', async () => {
      const transaction = scope.run(async () => {
        await sell();
        world.clock.block(LOCK_DEFAULTS.leaseMs);
        await sell();
      });
      await expect(transaction).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed' });
      expect(world.server.isEmpty).toBe(true);
    });
  });

  it('a lease that the work itself releases is not kept', async () => {
    await scope.run(async () => {
      await a.locks.using('stock', undefined, (lease) => lease.release());
      expect(await isFree()).toBe(true);
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('hooks that return no object are refused before anything is sent', async () => {
    const hooks = { current: () => 'tx' as unknown as object, runOnEnd: () => {} };
    const c = world.instance('c', { transactions: hooks });
    await expect(c.locks.using('stock', undefined, async () => {})).rejects.toMatchObject({
      code: 'INVALID_LOCK_OPTIONS',
      option: 'transactions',
    });
    expect(c.store.sent('acquire')).toEqual([]);
  });
});
