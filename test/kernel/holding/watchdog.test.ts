import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';

describe('the watchdog', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  /** When renewals were sent, counted from now. */
  function renewalTimes(since: number): number[] {
    return a.store.sent('renew').map(({ sentAt }) => sentAt - since);
  }

  it('renews at a third of the lease for as long as it is held', async () => {
    const begin = world.clock.now();
    const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
    await world.clock.advance(300_000);
    expect(renewalTimes(begin).slice(0, 3)).toEqual([10_000, 20_000, 30_000]);
    expect(a.store.sent('renew')).toHaveLength(30);
    expect(lease.isHeld()).toBe(true);
    expect(await b.locks.tryAcquire('stock')).toBeNull();
  });

  it('does not spin on the shortest leases', async () => {
    const leases = await Promise.all([1, 2, 3].map((i) => a.locks.acquire(`order:${i}`, { leaseMs: 50 })));
    await world.clock.advance(1_000);
    expect(a.store.sent('renew').length).toBeLessThanOrEqual(3 * 60);
    expect(leases.every((lease) => lease.isHeld())).toBe(true);
  });

  it('does not spin on the shortest leases while Redis fails, either', async () => {
    await a.locks.acquire('stock', { leaseMs: 50 });
    a.store.fates.renew = failing('notExecuted');
    await world.clock.advance(1_000);
    expect(a.store.sent('renew').length).toBeLessThanOrEqual(5);
  });

  it('leaves a fixed lease alone', async () => {
    const lease = await a.locks.acquire('stock', { watchdog: false, leaseMs: 1_000 });
    await world.clock.advance(987);
    expect(lease.isHeld()).toBe(true);
    await world.clock.advance(1);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
    expect(a.store.sent('renew')).toEqual([]);
  });

  describe('survives until the deadline', () => {
    it('a failed renewal, which is retried soon and reported to the observers', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
      a.store.next('renew', failing('notExecuted'), failing('unknown'), failing('notExecuted'));
      await world.clock.advance(30_000);
      expect(lease.isHeld()).toBe(true);
      expect(eventsOf(a, 'renewalFailed')).toHaveLength(3);
      expect(eventsOf(a, 'renewalFailed')[0]).toMatchObject({ resource: 'stock', error: { operation: 'renew' } });
      expect(eventsOf(a, 'lost')).toEqual([]);
    });

    it('an unanswered renewal, while the next one is sent on schedule', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
      a.store.next('renew', lostOnTheWay);
      await world.clock.advance(2_900);
      expect(lease.isHeld()).toBe(true);
      expect(lease.remainingMs()).toBeGreaterThan(2_000);
    });
  });

  describe('with maxHoldMs', () => {
    it('renews no longer than that, and then the lease is lost', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000, maxHoldMs: 10_000 });
      await world.clock.advance(9_999);
      expect(lease.isHeld()).toBe(true);
      await world.clock.advance(1);
      expect(lease.isHeld()).toBe(false);
      expect(lease.signal.reason).toMatchObject({ reason: 'maxHold' });
      expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'maxHold' }]);
    });

    it('does not keep the lock in Redis after that', async () => {
      await a.locks.acquire('stock', { leaseMs: 3_000, maxHoldMs: 10_000 });
      const waiting = b.locks.acquire('stock', { waitMs: 15_000 });
      const begin = world.clock.now();
      await world.clock.advance(11_000);
      await waiting;
      const { sentAt } = b.store.sent('acquire').at(-1)!;
      expect(sentAt - begin).toBeGreaterThanOrEqual(10_000);
      expect(sentAt - begin).toBeLessThan(10_300);
    });

    it('keeps a lease that is longer than maxHoldMs for maxHoldMs', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 30_000, maxHoldMs: 200 });
      await world.clock.advance(199);
      expect(lease.isHeld()).toBe(true);
      await world.clock.advance(1);
      expect(lease.signal.reason).toMatchObject({ reason: 'maxHold' });
    });

    it('cannot be bypassed with extend()', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000, maxHoldMs: 5_000 });
      await lease.extend(60_000);
      expect(lease.remainingMs()).toBeLessThanOrEqual(5_000);
      await world.clock.advance(5_000);
      expect(lease.isHeld()).toBe(false);
    });
  });
});
