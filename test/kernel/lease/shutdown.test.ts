import { LockShutdownError } from '../../../lib/kernel/api/errors.js';
import type { SingleLease } from '../../../lib/kernel/lease/single-lease.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';

let world: LockWorld;
let a: Instance;
let b: Instance;

beforeEach(() => {
  world = new LockWorld();
  a = world.instance('a');
  b = world.instance('b');
});

describe('shutdown', () => {
  it('takes no new locks', async () => {
    track(a.locks.shutdown(10_000));
    await expect(a.locks.acquire('stock')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN', resource: 'stock' });
    await expect(a.locks.tryAcquire('stock')).rejects.toBeInstanceOf(LockShutdownError);
    expect(a.store.sent('acquire')).toEqual([]);
  });

  it.each(Array.from({ length: 12 }, (_, ticks) => ticks))(
    'waits for a lease that is granted while it begins, or grants none (%i microtasks later)',
    async (ticks) => {
      const work = gate();
      const reply = gate();
      a.store.next('acquire', repliedWhen(reply.opened));
      const using = track(a.locks.using('stock', undefined, () => work.opened));
      await settle();
      reply.open();
      for (let i = 0; i < ticks; i++) await Promise.resolve();
      const shutdown = track(a.locks.shutdown(10_000));
      await settle();
      if (using.state === 'rejected') expect(using.error).toBeInstanceOf(LockShutdownError);
      else expect(shutdown.state).toBe('pending');
      work.open();
      await settle();
      expect(shutdown.state).toBe('fulfilled');
      expect(world.server.isEmpty).toBe(true);
    },
  );

  it('gives the holders time to end their work, and renews their leases until then', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
    const shutdown = track(a.locks.shutdown(10_000));
    await world.clock.advance(9_000);
    expect(lease.isHeld()).toBe(true);
    expect(shutdown.state).toBe('pending');
    await lease.release();
    await settle();
    expect(shutdown.state).toBe('fulfilled');
    expect(lease.signal.aborted).toBe(false);
    expect(world.server.isEmpty).toBe(true);
    expect(world.clock.timers).toBe(0); // nothing that would keep the process from its end
  });

  it('aborts the signals of work that does not end in time; it may still release', async () => {
    const lease = await a.locks.acquire('stock');
    lease.signal.addEventListener('abort', () => void lease.release());
    const shutdown = track(a.locks.shutdown(2_000));
    await world.clock.advance(1_999);
    expect(lease.signal.aborted).toBe(false);
    await world.clock.advance(1);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'shutdown' });
    expect(world.server.isEmpty).toBe(true);
    expect(shutdown.state).toBe('fulfilled');
  });

  it('leaves a lease whose work hangs to expire, without renewals', async () => {
    await a.locks.acquire('stock', { leaseMs: 3_000 });
    const shutdown = track(a.locks.shutdown(1_000));
    await world.clock.advance(2_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(a.store.isClosed).toBe(true);
    expect(world.clock.timers).toBe(0);
    expect((await b.locks.inspect('stock')).holders).toHaveLength(1);
    await world.clock.advance(3_000);
    expect((await b.locks.inspect('stock')).holders).toEqual([]);
  });

  describe('reports its wait to the observers', () => {
    const waits = () => a.events.filter(({ type }) => type === 'draining' || type === 'drained');

    it('for leases, and the time until all were released', async () => {
      const first = await a.locks.acquire('order:7');
      const second = await a.locks.acquire('never');
      track(a.locks.shutdown(10_000));
      await world.clock.advance(249);
      expect(waits()).toEqual([]);
      await world.clock.advance(1);
      expect(waits()).toMatchObject([{ type: 'draining', resources: ['order:7', 'never'], drainMs: 10_000 }]);
      await first.release();
      await world.clock.advance(950);
      await second.release();
      await settle();
      expect(waits().slice(1)).toMatchObject([{ type: 'drained', resources: [], waitedMs: 1_200 }]);
      expect(world.clock.timers).toBe(0);
    });

    it('and which leases were still held at its end, before these are lost', async () => {
      await a.locks.acquire('never', { leaseMs: 60_000 });
      const shutdown = track(a.locks.shutdown(1_000));
      await world.clock.advance(1_250);
      expect(a.events.slice(1)).toMatchObject([
        { type: 'draining', resources: ['never'], drainMs: 1_000 },
        { type: 'drained', resources: ['never'], waitedMs: 1_000 },
        { type: 'lost', reason: 'shutdown' },
      ]);
      expect(shutdown.state).toBe('fulfilled');
    });
  });

  it('ends even while Redis hangs', async () => {
    const lease = await a.locks.acquire('stock');
    a.store.all(lostOnTheWay);
    const shutdown = track(a.locks.shutdown(2_000));
    track(lease.release());
    await world.clock.advance(5_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(world.clock.timers).toBe(0);
  });

  it('withdraws an acquisition that is on its way', async () => {
    const arrival = gate();
    a.store.next('acquire', (execute) => arrival.opened.then(execute));
    a.store.next('release', (execute) => arrival.opened.then(execute));
    const acquiring = track(a.locks.acquire('stock'));
    await settle();
    const shutdown = track(a.locks.shutdown(1_000));
    await settle();
    expect(acquiring.error).toBeInstanceOf(LockShutdownError);
    arrival.open();
    await settle();
    expect(shutdown.state).toBe('fulfilled');
    expect(world.server.isEmpty).toBe(true);
  });

  it.each<[string, (lease: SingleLease, locks: LockClient) => Promise<unknown>]>([
    ['release()', (lease) => lease.release()],
    ['extend()', (lease) => lease.extend()],
    ['verify()', (lease) => lease.verify()],
    ['inspect()', (_, locks) => locks.inspect('stock')],
    ['list()', (_, locks) => locks.operators.list()],
  ])('%s after it ends at once, because no timer is left', async (_, use) => {
    const lease = (await a.locks.acquire('stock', { watchdog: false, leaseMs: 60_000 })) as SingleLease;
    await a.locks.shutdown(0);
    const using = track(use(lease, a.locks));
    await settle();
    expect(using.error).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      cause: { message: expect.stringMatching(/closed/) },
    });
  });

  it('ends waits for a reply of Redis', async () => {
    const lease = await a.locks.acquire('stock', { watchdog: false, leaseMs: 60_000 });
    a.store.fates.release = failing('notExecuted', 'not connected');
    const releasing = track(lease.release());
    const inspecting = track(a.locks.inspect('stock'));
    a.store.fates.inspect = lostOnTheWay;
    const hanging = track(a.locks.inspect('stock'));
    await settle();
    await a.locks.shutdown(0);
    await settle();
    expect(releasing.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { message: 'not connected' } });
    expect([inspecting.state, hanging.state]).toEqual(['fulfilled', 'rejected']);
  });
});

const CUSTOMERS = ['anna', 'ben', 'cleo', 'dan', 'eve', 'fay', 'gus', 'hal'];

describe('a call from inside of work that a shutdown drains', () => {
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

describe('a shutdown rejects waiters', () => {
  const wait = (count: number) =>
    Array.from({ length: count }, () => track(a.locks.acquire('stock', { waitMs: Infinity })));

  async function shutDown(waiting: Tracked<unknown>[], drainMs = 5_000): Promise<Tracked<void>> {
    const shutdown = track(a.locks.shutdown(drainMs));
    await settle();
    for (const { error } of waiting) expect(error).toBeInstanceOf(LockShutdownError);
    expect(eventsOf(a, 'notAcquired')).toHaveLength(waiting.length);
    return shutdown;
  }

  it('behind a holder of the process: its lease is released to the others, not passed on', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait(3);
    const other = track(b.locks.acquire('stock'));
    await settle();
    const shutdown = await shutDown(waiting);
    expect(shutdown.state).toBe('pending');
    expect(holder.isHeld()).toBe(true);
    await holder.release();
    await settle();
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'release']);
    expect(other.state).toBe('fulfilled');
    expect(shutdown.state).toBe('fulfilled');
  });

  it('in the queue of the store, which they leave', async () => {
    const holder = await b.locks.acquire('stock', { leaseMs: 3_000 });
    const waiting = wait(3);
    await world.clock.advance(2_000);
    const shutdown = await shutDown(waiting);
    expect(world.server.listWaiters('stock')).toEqual([]);
    expect(shutdown.state).toBe('fulfilled');
    await holder.release();
    await world.clock.advance(5_000);
    expect(world.server.isEmpty).toBe(true);
    expect(world.clock.timers).toBe(0);
  });

  it('in the middle of a rotation: the release counts, and no waiter is left in the queue', async () => {
    const holder = await a.locks.acquire('stock', { strictOrder: true });
    const waiting = wait(2);
    const other = track(b.locks.acquire('stock'));
    await settle();
    const reply = gate();
    a.store.next('rotate', repliedWhen(reply.opened));
    const releasing = track(holder.release());
    await settle();
    const shutdown = await shutDown(waiting);
    expect(shutdown.state).toBe('pending'); // for the answer to the release
    expect(world.server.listWaiters('stock')).toEqual([]);
    reply.open();
    await settle();
    expect([releasing.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(eventsOf(a, 'released')).toHaveLength(1);
    await other.value.release();
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it('that were granted in that very moment: the message is answered with a release', async () => {
    const holder = await b.locks.acquire('stock');
    const waiting = wait(1);
    await settle();
    const releasing = holder.release();
    const shutdown = track(a.locks.shutdown(1_000));
    await releasing;
    await settle();
    expect(waiting[0]!.error).toBeInstanceOf(LockShutdownError);
    expect(shutdown.state).toBe('fulfilled');
    expect(world.server.isEmpty).toBe(true);
  });

  it('even while Redis hangs, and ends in time', async () => {
    await b.locks.acquire('stock', { leaseMs: 3_000, watchdog: false });
    const waiting = wait(2);
    await settle();
    a.store.all(lostOnTheWay);
    const shutdown = await shutDown(waiting);
    await world.clock.advance(1_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(a.store.isClosed).toBe(true);
    expect(world.clock.timers).toBe(1); // of b
  });
});
