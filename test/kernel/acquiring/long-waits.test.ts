import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

describe('a call that waits for long', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  const waits = (instance: Instance) => eventsOf(instance, 'waitingLong');

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('is reported once, after 5 s, with the holders and without a command of its own', async () => {
    const { fencingToken } = await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock', { waitMs: 60_000 }));
    await world.clock.advance(4_900);
    expect(waits(b)).toEqual([]);
    const asked = b.store.commands.length;
    await world.clock.advance(1_300);
    expect(waits(b)).toMatchObject([
      {
        resource: 'stock',
        mode: 'exclusive',
        holders: [{ instanceId: 'a', isThisProcess: false, fencingToken }],
        holderCount: 1,
      },
    ]);
    const [{ waitedMs, holders }] = waits(b) as [ReturnType<typeof waits>[0]];
    // Reported with a heartbeat.
    expect(waitedMs).toBeGreaterThanOrEqual(5_000);
    expect(waitedMs).toBeLessThan(6_200);
    expect(holders[0]!.heldMs).toBeCloseTo(waitedMs, -1);
    expect(b.store.commands.length - asked).toBeLessThanOrEqual(2);
    await world.clock.advance(50_000);
    expect(waits(b)).toHaveLength(1);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(5_000);
    expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it('is reported at 5 s behind others of its process, and still ends in time', async () => {
    await a.locks.acquire('stock');
    const calls = [7_000, 6_000].map((waitMs) => track(a.locks.acquire('stock', { waitMs })));
    await world.clock.advance(4_999);
    expect(waits(a)).toEqual([]);
    await world.clock.advance(1);
    expect(waits(a)).toMatchObject(
      calls.map(() => ({ waitedMs: 5_000, holders: [{ instanceId: 'a', isThisProcess: true, heldMs: 5_000 }] })),
    );
    await world.clock.advance(999);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await world.clock.advance(1);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'rejected']);
    await world.clock.advance(1_000);
    expect(calls.map(({ state }) => state)).toEqual(['rejected', 'rejected']);
    expect(waits(a)).toHaveLength(2);
  });

  it('is not reported if it ends before', async () => {
    await a.locks.acquire('stock');
    const calls = [b, b, a].map(({ locks }) => track(locks.acquire('stock', { waitMs: 4_999 })));
    await world.clock.advance(30_000);
    expect(calls.map(({ state }) => state)).toEqual(['rejected', 'rejected', 'rejected']);
    expect([...waits(a), ...waits(b)]).toEqual([]);
  });

  it('is not reported for a candidate of a leadership, nor counted', async () => {
    a.locks.campaign('reports');
    b.locks.campaign('reports');
    await a.locks.acquire('stock');
    void b.locks.acquire('stock', { waitMs: 60_000 }).catch(() => {});
    await world.clock.advance(30_000);
    expect(waits(b)).toMatchObject([{ resource: 'stock' }]);
    expect([a.locks.countWaiting(), b.locks.countWaiting()]).toEqual([0, 1]);
  });

  it('is not reported while Redis is unreachable, which is the cause of the wait', async () => {
    await a.locks.acquire('stock');
    b.store.fates.acquire = failing('notExecuted');
    const calls = [1, 2].map(() => track(b.locks.acquire('stock', { waitMs: 30_000 })));
    await world.clock.advance(20_000);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect(waits(b)).toEqual([]);
  });

  it('counts all calls that wait, in the queue and by polling', async () => {
    await a.locks.acquire('stock');
    await a.locks.acquire('other');
    for (let i = 0; i < 3; i++) void b.locks.acquire('stock').catch(() => {});
    void b.locks.acquire('other').catch(() => {});
    void b.locks.acquire('other', { retry: fixedInterval({ intervalMs: 100 }) }).catch(() => {});
    await world.clock.advance(150);
    expect(b.locks.countWaiting()).toBe(5);
    await world.clock.advance(20_000);
    expect(b.locks.countWaiting()).toBe(0);
  });
});
