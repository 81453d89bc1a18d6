import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { PER_STEP } from '../../../lib/kernel/store/lock-store.js';
import { settle } from '../../support/world/fake-clock.js';
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

describe('the renewals of many leases', () => {
  let world: LockWorld;
  let a: Instance;
  let begin: number;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    begin = world.clock.now();
  });

  const acquire = (count: number, options: LockOptions, name = 'order') =>
    Promise.all(Array.from({ length: count }, (_, i) => a.locks.acquire(`${name}:${i}`, options)));
  const acquireOverTime = async (count: number, options: LockOptions, overMs: number, name?: string) => {
    for (let i = 0; i < count; i++) {
      await a.locks.acquire(`${name ?? 'order'}:${i}`, options);
      await world.clock.advance(overMs / count);
    }
  };

  /** The number of renewals sent at each time. */
  function batches(since = begin): [number, number][] {
    const counts = new Map<number, number>();
    for (const { sentAt } of a.store.sent('renew')) counts.set(sentAt - since, (counts.get(sentAt - since) ?? 0) + 1);
    return [...counts].filter(([time]) => time >= 0);
  }

  it('are sent in batches, a millisecond apart', async () => {
    await acquire(2 * PER_STEP + 1, { leaseMs: 3_000 });
    await world.clock.advance(1_010);
    expect(batches()).toEqual([
      [1_000, PER_STEP],
      [1_001, PER_STEP],
      [1_002, 1],
    ]);
  });

  it('share full batches within two thirds of their length, whenever they were granted', async () => {
    await acquireOverTime(1_000, { leaseMs: 3_000 }, 1_000);
    await world.clock.advance(1_000);
    const since = world.clock.now();
    await world.clock.advance(30_000);
    const sent = batches(since);
    expect(sent.every(([, count]) => count === PER_STEP)).toBe(true);
    expect(sent.length).toBeLessThanOrEqual(30 * Math.ceil(1_000 / PER_STEP) + 1);
  });

  it('share one batch after a while, if they are few', async () => {
    await acquireOverTime(20, { leaseMs: 3_000 }, 900);
    await acquire(1, { leaseMs: 4_500 }, 'longer');
    await world.clock.advance(2_000);
    const since = world.clock.now();
    await world.clock.advance(10_000);
    expect(batches(since).filter(([, count]) => count < 20)).toEqual([]);
    expect(batches(since)).toHaveLength(10);
  });

  it('share batches among leases that are not renewed, and with readers of one lease', async () => {
    await Promise.all([1, 2, 3].map(() => a.locks.acquire('page', { mode: 'read', leaseMs: 3_000 })));
    await acquireOverTime(30, { leaseMs: 3_000 }, 900);
    await acquireOverTime(30, { leaseMs: 60_000, watchdog: false }, 3_000, 'fixed');
    const since = world.clock.now();
    await world.clock.advance(60_000);
    expect(batches(since).every(([, count]) => count === 31)).toBe(true);
    expect(batches(since).length).toBeLessThanOrEqual(61);
  });

  it('are never later than a third of the length after the last one, and never sooner than a sixth', async () => {
    const leaseMs = (index: number): number => [1_500, 3_000, 30_000][index % 3]!;
    for (let i = 0; i < 300; i++) {
      await a.locks.acquire(`order:${i}`, { leaseMs: leaseMs(i) });
      await world.clock.advance((i * 37) % 11);
    }
    await world.clock.advance(60_000);
    const last = new Map<string, number>();
    const parts: number[] = [];
    for (const { verb, resource, sentAt } of a.store.commands) {
      const before = last.get(resource);
      if (verb === 'renew') parts.push((sentAt - before!) / leaseMs(Number(resource.split(':')[1])));
      last.set(resource, sentAt);
    }
    expect(parts.length).toBeGreaterThan(300);
    // A lease of 1.5 s is due at whole milliseconds, and up to 3 ms later in the fifth batch.
    expect(Math.max(...parts)).toBeLessThanOrEqual(1 / 3 + 5 / 1_500);
    expect(Math.min(...parts)).toBeGreaterThanOrEqual(1 / 6 - 1 / 1_500);
  });

  it('are sent with the nearest deadline first, if they are late', async () => {
    await acquire(PER_STEP, { leaseMs: 30_000 }, 'long');
    await acquire(2, { leaseMs: 12_600 }, 'short');
    world.clock.block(10_000); // all are due, the short ones for longest
    await world.clock.advance(0);
    const sent = a.store.sent('renew').map(({ resource }) => resource);
    expect(sent.slice(0, 2).toSorted()).toEqual(['short:0', 'short:1']);
    expect(sent).toHaveLength(PER_STEP);
  });

  it('yield to one with a nearer deadline while they wait for their batch', async () => {
    await acquire(3 * PER_STEP, { leaseMs: 30_000 }, 'long');
    await world.clock.advance(9_984);
    await acquire(1, { leaseMs: 50 }, 'short'); // due at 10,000 and two thirds
    await world.clock.advance(17);
    const sent = a.store.sent('renew').filter(({ sentAt }) => sentAt - begin === 10_001);
    expect(sent[0]).toMatchObject({ resource: 'short:0' });
  });

  it('do not delay the end of an expired lease', async () => {
    await acquire(3 * PER_STEP, { leaseMs: 3_000 });
    const fixed = await a.locks.acquire('fixed', { watchdog: false, leaseMs: 1_013 }); // over at 1000 and a little
    const lostAt: number[] = [];
    fixed.signal.addEventListener('abort', () => lostAt.push(world.clock.now() - begin));
    await world.clock.advance(1_010);
    expect(lostAt[0]).toBeLessThanOrEqual(1_013 - 12 + 1);
  });

  it('end no lease of 3,000, whatever their lengths, and need one timer', async () => {
    const long = await acquire(3_000, { leaseMs: 30_000 }, 'long');
    const short = await acquire(20, { leaseMs: 50 }, 'short');
    await world.clock.advance(9_990); // the time-outs of the commands are over
    expect(world.clock.timers).toBe(1);
    await world.clock.advance(100);
    expect(
      batches()
        .filter(([time]) => time >= 10_000)
        .every(([, count]) => count <= PER_STEP),
    ).toBe(true);
    expect(new Set(a.store.sent('renew').map(({ resource }) => resource)).size).toBe(3_020);
    expect([...long, ...short].every((lease) => lease.isHeld())).toBe(true);
    expect(eventsOf(a, 'lost')).toEqual([]);
    expect(world.clock.timers).toBe(1);
  });

  it('end all leases at their deadlines if none is answered, and leave no timer', async () => {
    const leases = await acquire(1_000, { leaseMs: 3_000 });
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(2_967);
    expect(leases.every((lease) => lease.isHeld())).toBe(true);
    await world.clock.advance(20);
    await settle();
    expect(eventsOf(a, 'lost')).toHaveLength(1_000);
    await world.clock.advance(1_000);
    expect(world.clock.timers).toBe(0);
  });
});
