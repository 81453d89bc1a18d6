import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { gate } from '../../support/expect/tracked.js';

const LEASE_MS = 3_000;
/** By the holder's own clock: 1 % and 2 ms before the lock may expire in Redis. */
const DEADLINE_MS = LEASE_MS - 32;

describe('losing a lease', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('aborts the signal no later than the deadline, even while Redis hangs', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const lostAt: number[] = [];
    const begin = world.clock.now();
    lease.signal.addEventListener('abort', () => lostAt.push(world.clock.now() - begin));
    a.store.all(lostOnTheWay);
    await world.clock.advance(DEADLINE_MS - 1);
    expect(lease.isHeld()).toBe(true);
    await world.clock.advance(1);
    expect(lostAt).toEqual([DEADLINE_MS]);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed', resource: 'stock' });
  });

  it('is detected by isHeld() itself when the process was blocked and the timers are late', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { signal } = lease;
    world.clock.block(LEASE_MS);
    expect(signal.aborted).toBe(false); // no timer has run yet
    expect(lease.isHeld()).toBe(false);
    expect(signal.aborted).toBe(true);
  });

  it('is not undone by a renewal that was on its way when the process was blocked', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const reply = gate();
    a.store.next('renew', repliedWhen(reply.opened));
    await world.clock.advance(1_000); // it is sent, and would be good until 1000 + DEADLINE_MS
    world.clock.block(DEADLINE_MS - 500);
    reply.open();
    await settle();
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'notRenewed' });
  });

  it('sends no renewal once the deadline has passed, whatever timer fires first', async () => {
    await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    world.clock.block(LEASE_MS);
    await world.clock.advance(LEASE_MS * 10);
    expect(a.store.sent('renew')).toEqual([]);
  });

  it('is emitted to the observers, once, with its reason', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.all(lostOnTheWay);
    await world.clock.advance(LEASE_MS * 3);
    lease.isHeld();
    expect(eventsOf(a, 'lost')).toMatchObject([
      {
        type: 'lost',
        resource: 'stock',
        fencingToken: lease.fencingToken,
        reason: 'notRenewed',
        error: lease.signal.reason,
      },
    ]);
  });

  it('still sends one release, because a late renewal may have kept the lock; no other holder is affected', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(LEASE_MS);
    const next = await b.locks.acquire('stock');
    await lease.release();
    expect(a.store.sent('release')).toHaveLength(1);
    expect(eventsOf(a, 'releasedAfterLoss')).toMatchObject([{ resource: 'stock' }]);
    expect(eventsOf(a, 'released')).toEqual([]);
    expect(await next.verify()).toBe(true);
  });
});
