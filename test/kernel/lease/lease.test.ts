import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import {
  brokenAfter,
  executedWhen,
  failing,
  lostOnTheWay,
  repliedWhen,
  replyLost,
} from '../../support/world/scripted-store.js';

let world: LockWorld;
let a: Instance;
let b: Instance;

beforeEach(() => {
  world = new LockWorld();
  a = world.instance('a');
  b = world.instance('b');
});

describe('a lease', () => {
  describe('release', () => {
    it('frees the resource and leaves nothing behind', async () => {
      const lease = await a.locks.acquire('stock');
      await world.clock.advance(40);
      await lease.release();
      expect(world.server.isEmpty).toBe(true);
      expect(lease.isHeld()).toBe(false);
      expect(lease.remainingMs()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(/was already released/);
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

const READ: LockOptions = { mode: 'read', waitMs: Infinity };
const WRITE: LockOptions = { mode: 'write', waitMs: Infinity };

describe('a writer that is downgraded to a reader', () => {
  const mode = async () => (await b.locks.inspect('stock')).mode;
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers, size(a), size(b)]).toEqual([true, 0, 0, 0]);
  }

  it('admits the readers of its own process, and keeps the lock until the last of them has left', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    const readers = [track(a.locks.acquire('stock', READ)), track(a.locks.acquire('stock', READ))];
    await settle();
    await lease.downgrade();
    await settle();
    expect(readers.map(({ value }) => value.mode)).toEqual(['read', 'read']);
    expect(eventsOf(a, 'acquired').map(({ mode }) => mode)).toEqual(['write', 'read', 'read']);
    await lease.release();
    await readers[0]!.value.release();
    expect(await readers[1]!.value.verify()).toBe(true);
    await readers[1]!.value.release();
    expect(a.store.sent('release')).toHaveLength(1);
    await expectNothingLeft();
  });

  it('admits no reader past a local writer that waits ahead of it', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    const writer = track(a.locks.acquire('stock', WRITE));
    const reader = track(a.locks.acquire('stock', READ));
    await settle();
    await lease.downgrade();
    await settle();
    expect([writer.state, reader.state]).toEqual(['pending', 'pending']);
    expect(world.server.listWaiters('stock')).toEqual(['a']);
    await lease.release();
    await settle();
    await writer.value.release();
    await settle();
    await reader.value.release();
    await expectNothingLeft();
  });

  it.each(['exclusive', 'reentrant'] as const)('is not possible in mode %s', async (other) => {
    const lease = await a.locks.acquire('stock', { mode: other });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'mode' });
    expect(lease.isHeld()).toBe(true);
  });

  it('is not possible for a lost lease', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    await b.locks.operators.forceRelease('stock', { fencingToken: lease.fencingToken });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });

  it('is refused if the context writes further out or further in, and nothing is sent', async () => {
    await a.locks.using('stock', WRITE, (outer) =>
      a.locks.using('stock', WRITE, async (inner) => {
        for (const lease of [outer, inner]) {
          await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
          expect([lease.mode, lease.isHeld()]).toEqual(['write', true]);
        }
      }),
    );
    expect(a.store.sent('downgrade')).toHaveLength(0);
  });

  it('applies to a nested reader alone: the writer remains a writer', async () => {
    await a.locks.using('stock', WRITE, (outer) =>
      a.locks.using('stock', READ, async (inner) => {
        await inner.downgrade();
        expect([outer.mode, inner.mode, await mode()]).toEqual(['write', 'read', 'write']);
      }),
    );
    expect(a.store.sent('downgrade')).toHaveLength(0);
    await expectNothingLeft();
  });

  describe('without a reply', () => {
    it('never writes again: it only reads from the request on', async () => {
      const lease = await a.locks.acquire('stock', WRITE);
      a.store.next('downgrade', lostOnTheWay, lostOnTheWay);
      const downgrading = track(lease.downgrade());
      expect(lease.mode).toBe('read');
      await world.clock.advance(1_000);
      expect(downgrading.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'downgrade' });
      expect([lease.mode, lease.isHeld(), await mode()]).toEqual(['read', true, 'write']);
      await lease.downgrade(); // once more
      expect(await mode()).toBe('read');
      await lease.release();
      await expectNothingLeft();
    });

    it('may be in effect: readers elsewhere read, and the lease is renewed like any other', async () => {
      const lease = await a.locks.acquire('stock', WRITE);
      a.store.next('downgrade', replyLost);
      const downgrading = track(lease.downgrade());
      await settle();
      const reader = await b.locks.acquire('stock', READ);
      await world.clock.advance(100_000);
      expect(downgrading.state).toBe('rejected');
      expect([lease.isHeld(), reader.isHeld()]).toEqual([true, true]);
    });
  });
});

describe('releases inside of releases', () => {
  it('a release that is called again by its observer passes the lock on once', async () => {
    const first = await a.locks.acquire('stock');
    a.locks.observers.add(({ type }) => {
      if (type === 'released') void first.release();
    });
    const line = [1, 2].map(() => track(a.locks.acquire('stock')));
    await first.release();
    await settle();
    const held = line.filter(({ state }) => state === 'fulfilled').filter(({ value }) => value.isHeld());
    expect(held).toHaveLength(1);
  });

  it('a caller that gives up when it observes the release is not granted, and the next one is', async () => {
    const first = await a.locks.acquire('stock');
    const controller = new AbortController();
    a.locks.observers.add(({ type }) => {
      if (type === 'released') controller.abort();
    });
    const leaving = track(a.locks.acquire('stock', { signal: controller.signal }));
    const staying = track(a.locks.acquire('stock'));
    await first.release();
    await settle();
    expect([leaving.state, staying.state]).toEqual(['rejected', 'fulfilled']);
    await staying.value.release();
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it('a verify() that is answered after the lease was passed on ends the current lease of the lock', async () => {
    const first = await a.locks.acquire('stock');
    const waiting = track(a.locks.acquire('stock'));
    const arrival = gate();
    a.store.next('verify', executedWhen(arrival.opened));
    const verifying = track(first.verify());
    await first.release();
    await b.store.release({ resource: 'stock', id: a.store.sent('acquire')[0]!.owner!, mode: 'exclusive' });
    arrival.open();
    await settle();
    expect(verifying.value).toBe(false);
    expect(waiting.value.isHeld()).toBe(false);
  });

  it.each(['a lease', 'a lease of several resources'])('%s reports a failed release once', async (what) => {
    const lease = await a.locks.acquire(what === 'a lease' ? 'stock' : ['stock', 'table']);
    a.store.next('release', failing('unknown', 'the connection broke'));
    const [first, meanwhile] = [track(lease.release()), track(lease.release())];
    await settle();
    expect(first.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'release' });
    expect(meanwhile.state).toBe('fulfilled');
    await lease.release();
    expect(eventsOf(a, 'releaseFailed')).toHaveLength(1);
    await world.clock.advance(1_000);
    expect(world.server.isEmpty).toBe(true); // it was sent again in the background
  });
});
