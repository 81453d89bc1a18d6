import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { brokenAfter, executedWhen, failing, lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('a lease', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  describe('release', () => {
    it('frees the resource and leaves nothing behind', async () => {
      const lease = await a.locks.acquire('stock');
      await world.clock.advance(40);
      await lease.release();
      expect(world.server.isEmpty).toBe(true);
      expect(lease.isHeld()).toBe(false);
      expect(lease.remainingMs()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(/was released before/);
      expect(eventsOf(a, 'released')).toMatchObject([
        { type: 'released', resource: 'stock', fencingToken: lease.fencingToken, heldMs: 40 },
      ]);
    });

    it('ends in this process at once, before Redis has answered', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.fates.release = lostOnTheWay;
      track(lease.release());
      expect(lease.isHeld()).toBe(false);
    });

    it('reports a failure, also to the observers, and is repeated until it gets a reply', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.next('release', failing('notExecuted', 'READONLY'), failing('notExecuted'), failing('unknown'));
      const releasing = track(lease.release());
      await world.clock.advance(60);
      expect(releasing.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'release' });
      expect(eventsOf(a, 'releaseFailed')).toHaveLength(1);
      await world.clock.advance(200);
      expect(world.server.isEmpty).toBe(true);
      expect(a.store.sent('release')).toHaveLength(4);
    });

    it('is abandoned without a reply once the lock has expired', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 5_000 });
      a.store.fates.release = lostOnTheWay;
      const releasing = track(lease.release());
      await world.clock.advance(60_000);
      expect(releasing.state).toBe('rejected');
      expect(a.store.sent('release').length).toBeLessThan(10);
      expect(world.clock.timers).toBe(0);
    });

    it('notices that Redis no longer had the lock', async () => {
      const lease = await a.locks.acquire('stock');
      world.server.lose('stock');
      await lease.release();
      expect(eventsOf(a, 'released')).toEqual([]);
      expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'takenOver' }]);
    });
  });

  it.each([3_000, 15_000])(
    'of %d ms that Redis has lost is reported as lost within a third of that',
    async (leaseMs) => {
      const lease = await a.locks.acquire('stock', { leaseMs });
      await world.clock.advance(leaseMs);
      const renewals = a.store.sent('renew').length;
      expect(lease.isHeld()).toBe(true);
      world.server.lose('stock');
      await world.clock.advance(leaseMs / 3);
      expect(a.store.sent('renew').length).toBeGreaterThan(renewals);
      expect(lease.signal.reason).toMatchObject({ reason: 'takenOver' });
    },
  );

  describe('verify', () => {
    it('asks Redis', async () => {
      const lease = await a.locks.acquire('stock');
      expect(await lease.verify()).toBe(true);
      expect(a.store.sent('verify')).toHaveLength(1);
    });

    it('ends a lease that Redis no longer knows', async () => {
      const lease = await a.locks.acquire('stock');
      world.server.lose('stock');
      expect(await lease.verify()).toBe(false);
      expect(lease.signal.reason).toMatchObject({ reason: 'takenOver' });
    });

    it('throws if Redis does not answer; the lease continues', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.fates.verify = lostOnTheWay;
      const verifying = track(lease.verify());
      await world.clock.advance(1_000);
      expect(verifying.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'verify' });
      expect(lease.isHeld()).toBe(true);
    });
  });

  describe('extend', () => {
    it('restarts a fixed lease', async () => {
      const lease = await a.locks.acquire('stock', { watchdog: false, leaseMs: 1_000 });
      await world.clock.advance(900);
      await lease.extend();
      expect(lease.remainingMs()).toBe(988);
      await world.clock.advance(500);
      expect(await b.locks.tryAcquire('stock')).toBeNull();
    });

    it('gives the watchdog a new length', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
      await lease.extend(3_000);
      await world.clock.advance(3_000);
      expect(a.store.sent('renew').map(({ leaseMs }) => leaseMs)).toEqual([3_000, 3_000, 3_000, 3_000]);
      expect(lease.isHeld()).toBe(true);
    });

    it.each([49, 86_400_001, 1.5, NaN, '100'])('refuses %p', async (leaseMs) => {
      const lease = await a.locks.acquire('stock');
      await expect(lease.extend(leaseMs as number)).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        option: 'leaseMs',
      });
      expect(lease.isHeld()).toBe(true);
    });

    it('throws when the lease has expired, and revives nothing', async () => {
      const lease = await a.locks.acquire('stock', { watchdog: false, leaseMs: 100 });
      await world.clock.advance(100);
      await expect(lease.extend()).rejects.toBeInstanceOf(LeaseLostError);
      expect(a.store.sent('renew')).toEqual([]);
    });

    it('throws if another holder has the lock, and extends nothing', async () => {
      const lease = await a.locks.acquire('stock');
      world.server.lose('stock');
      const next = await b.locks.acquire('stock', { leaseMs: 5_000, watchdog: false });
      await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LeaseLostError);
      expect(lease.isHeld()).toBe(false);
      expect((await b.locks.inspect('stock')).ttlMs).toBeLessThanOrEqual(5_000);
      expect(await next.verify()).toBe(true);
    });

    it('throws if Redis does not answer; the lease continues to its old end', async () => {
      const lease = await a.locks.acquire('stock', { watchdog: false, leaseMs: 10_000 });
      a.store.fates.renew = lostOnTheWay;
      const extending = track(lease.extend(20_000));
      await world.clock.advance(1_000);
      expect(extending.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'extend' });
      expect(lease.remainingMs()).toBe(10_000 - 102 - 1_000);
    });

    it('to a shorter lease whose reply was lost with the connection is corrected by the watchdog', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
      a.store.next('renew', brokenAfter);
      track(lease.extend(500));
      await world.clock.advance(2_000);
      expect(lease.isHeld()).toBe(true);
    });

    it('to a shorter lease that is executed after a longer one does not leave two holders', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
      const arrival = gate();
      a.store.next('renew', executedWhen(arrival.opened)); // Redis did not know the script: it is sent anew
      track(lease.extend(500));
      await lease.extend(60_000);
      arrival.open();
      for (let ms = 0; ms < 2_000; ms += 20) {
        await world.clock.advance(20);
        const other = await b.locks.tryAcquire('stock');
        expect(lease.isHeld() && other !== null).toBe(false);
      }
    });

    it('is not trusted beyond a shorter renewal that was sent after it and may have been executed', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
      const reply = gate();
      const broken = gate();
      a.store.next('renew', repliedWhen(reply.opened), async (execute) => {
        await execute();
        await broken.opened;
        throw new LockStoreError('unknown', 'the connection broke before the reply');
      });
      await world.clock.advance(9_500);
      const extending = track(lease.extend(60_000));
      await world.clock.advance(500); // the watchdog renews, for 30 s still
      a.store.fates.renew = lostOnTheWay;
      reply.open();
      broken.open();
      await settle();
      expect(extending.state).toBe('fulfilled');
      let wasHeldAtTakeOver: boolean | undefined;
      void b.locks.acquire('stock', { waitMs: Infinity }).then(() => (wasHeldAtTakeOver = lease.isHeld()));
      await world.clock.advance(60_000);
      expect(wasHeldAtTakeOver).toBe(false);
    });
  });

  describe('inspect', () => {
    it('throws if Redis does not answer', async () => {
      a.store.fates.inspect = lostOnTheWay;
      const inspecting = track(a.locks.inspect('stock'));
      await world.clock.advance(1_000);
      expect(inspecting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'inspect', resource: 'stock' });
    });
  });
});
