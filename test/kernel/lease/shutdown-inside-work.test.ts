import { LockShutdownError } from '../../../lib/kernel/api/errors.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { gate, track } from '../../support/expect/tracked.js';

const CUSTOMERS = ['anna', 'ben', 'cleo', 'dan', 'eve', 'fay', 'gus', 'hal'];

describe('a call from inside of work that a shutdown drains', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  /** Runs work under a lease that continues after the shutdown has begun. */
  async function drained<T>(work: () => Promise<T>, drainMs = 10_000) {
    const begun = gate();
    const working = track(a.locks.using('outer', { leaseMs: 30_000 }, () => begun.opened.then(work)));
    await settle();
    const shutdown = track(a.locks.shutdown(drainMs));
    begun.open();
    await settle();
    return { working, shutdown };
  }

  it('is granted, one after another, and the shutdown waits for the work', async () => {
    const served: string[] = [];
    const { working, shutdown } = await drained(async () => {
      for (const customer of CUSTOMERS) {
        await a.locks.using(customer, undefined, async () => {
          served.push(customer);
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 1_000));
        });
      }
    });
    expect(shutdown.state).toBe('pending');
    await expect(a.locks.acquire('free')).rejects.toBeInstanceOf(LockShutdownError);
    await world.clock.advance(8_000);
    expect([working.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(served).toEqual(CUSTOMERS);
    expect(world.server.isEmpty).toBe(true);
    expect(world.clock.timers).toBe(0);
  });

  it('is granted however it asks', async () => {
    const { working, shutdown } = await drained(async () => {
      await (await a.locks.tryAcquire('tried'))!.release();
      await (await a.locks.acquire(['one', 'two'])).release();
      await (await a.locks.acquire('polled', { retry: { next: () => 100 } })).release();
      await (await a.locks.semaphore('pool', { permits: 2 }).acquire()).release();
      await a.locks.watches.waitUntilFree('tried');
      await a.locks.watches.waitUntilFree('tried', { waitMs: 0 });
      return 'all';
    });
    await world.clock.advance(1_000);
    expect(working).toMatchObject({ state: 'fulfilled', value: 'all' });
    expect(shutdown.state).toBe('fulfilled');
  });

  it.each([
    ['by the queue', undefined],
    ['by polling', { next: () => 100 }],
  ])(
    'that has waited %s since before the shutdown continues to wait, and calls from elsewhere do not',
    async (_, retry) => {
      const held = await b.locks.acquire('stock');
      const before = track(a.locks.acquire('stock', { retry }));
      const working = track(
        a.locks.using('outer', undefined, () => a.locks.using('stock', { retry }, async () => 'had it')),
      );
      const after = track(a.locks.acquire('stock', { retry }));
      await settle();
      const shutdown = track(a.locks.shutdown(10_000));
      await settle();
      expect([before.error, after.error]).toEqual([expect.any(LockShutdownError), expect.any(LockShutdownError)]);
      expect(working.state).toBe('pending');
      await world.clock.advance(2_000);
      await held.release();
      await world.clock.advance(200);
      expect(working).toMatchObject({ state: 'fulfilled', value: 'had it' });
      expect(shutdown.state).toBe('fulfilled');
      expect(world.server.isEmpty).toBe(true);
    },
  );

  it.each([
    ['by the queue', undefined],
    ['by polling', { next: () => 100 }],
  ])('that waits %s is refused at the end of drainMs', async (_, retry) => {
    await b.locks.acquire('stock');
    const inner = gate();
    let error: unknown;
    const { working, shutdown } = await drained(async () => {
      await a.locks.acquire('stock', { retry, waitMs: 60_000 }).catch((thrown: unknown) => void (error = thrown));
      inner.open();
    }, 3_000);
    await world.clock.advance(2_999);
    expect(error).toBeUndefined();
    await world.clock.advance(1);
    expect(error).toBeInstanceOf(LockShutdownError);
    expect(eventsOf(a, 'lost')).toMatchObject([{ resource: 'outer', reason: 'shutdown' }]);
    await world.clock.advance(1_000);
    // No other caller held the lock: it expires later.
    expect([working.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(world.server.listWaiters('stock')).toEqual([]);
  });

  it('is refused if its lease was released before, or is lost', async () => {
    const errors: unknown[] = [];
    const ask = () => a.locks.acquire('stock').catch((error: unknown) => void errors.push(error));
    const later = gate();
    await a.locks.using('first', undefined, async () => void later.opened.then(ask));
    const { shutdown } = await drained(async () => {
      later.open();
      await settle();
      expect(errors).toEqual([expect.any(LockShutdownError)]);
      await new Promise<void>((resolve) => world.clock.setTimer(resolve, 20_000));
      await ask();
    });
    await world.clock.advance(20_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(errors).toEqual([expect.any(LockShutdownError), expect.any(LockShutdownError)]);
    expect(world.server.isEmpty).toBe(false); // a lost lease ends by itself
  });
});
