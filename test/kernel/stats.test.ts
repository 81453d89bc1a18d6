import { LockWorld } from '../support/world/lock-world.js';
import { lostOnTheWay } from '../support/world/scripted-store.js';
import { settle } from '../support/world/fake-clock.js';
import { track } from '../support/expect/tracked.js';

const IDLE = { resources: 0, leases: 0, orphanReleases: 0, lateGrants: 0, alarms: 0 };

describe('the figures of a lock client', () => {
  it('count holds and waits, and are zero when all have ended', async () => {
    const world = new LockWorld();
    const { locks } = world.instance('a');
    expect(locks.stats()).toEqual(IDLE);
    const lease = await locks.acquire('stock');
    const polled = await locks.tryAcquire('other');
    const waiting = track(locks.acquire('stock', { waitMs: 5_000 }));
    await settle();
    expect(locks.stats()).toEqual({ ...IDLE, resources: 1, leases: 2, alarms: 1 });
    await lease.release();
    await polled!.release();
    await settle();
    expect(locks.stats()).toMatchObject({ resources: 1, leases: 1 });
    await waiting.value.release();
    await settle();
    expect(locks.stats()).toEqual(IDLE);
  });

  it('count an unanswered release until its lock has expired', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    const lease = await a.locks.acquire('stock', { leaseMs: 1_000, attemptTimeoutMs: 100 });
    a.store.all(lostOnTheWay);
    const released = track(lease.release());
    await world.clock.advance(200);
    expect(released.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(a.locks.stats()).toMatchObject({ leases: 0, orphanReleases: 1 });
    await world.clock.advance(2_000);
    expect(a.locks.stats()).toEqual(IDLE);
  });
});
