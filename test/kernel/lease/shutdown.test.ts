import { LockShutdownError } from '../../../lib/kernel/api/errors.js';
import type { SingleLease } from '../../../lib/kernel/lease/single-lease.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('shutdown', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

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
