import { Deferred } from '../../../lib/kernel/util/promises.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, deliveredWhen, executedWhen, grantLost, lostOnTheWay } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

const LEASE_MS = 3_000;
const DEADLINE_MS = LEASE_MS - 32;

describe('a grant message', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const terms: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };
  const wait = (options: LockOptions = {}) => track(b.locks.acquire('stock', { ...terms, ...options }));
  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  it('starts the lease at once: without a command, and valid from the stamp of the command that queued it', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await world.clock.advance(600);
    await holder.release();
    await settle();
    expect(verbs(b)).toEqual(['acquire']);
    expect(waiting.value.remainingMs()).toBe(DEADLINE_MS - 600);
    expect(waiting.value.fencingToken).toBe(b.store.grants[0]!.fencingToken);
    expect(eventsOf(b, 'acquired')).toMatchObject([{ waitedMs: 600, attempts: 1 }]);
  });

  it('counts from the last heartbeat, and the first renewal is a third of the lease later', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await world.clock.advance(1_900);
    const { sentAt } = b.store.sent('keep').at(-1)!;
    await holder.release();
    await settle();
    expect(b.store.grants[0]!.sentAt).toBe(Math.floor(sentAt));
    expect(waiting.value.remainingMs()).toBe(Math.floor(sentAt) + DEADLINE_MS - world.clock.now());
    await world.clock.advance(1_000);
    expect(b.store.sent('renew')[0]!.sentAt).toBe(Math.floor(sentAt) + 1_000);
  });

  it('never makes the lease longer than the lock in the store', async () => {
    const holder = await a.locks.acquire('stock');
    const stalled = gate();
    b.store.next('acquire', executedWhen(stalled.opened));
    const waiting = wait({ attemptTimeoutMs: 2_000 });
    await world.clock.advance(700);
    stalled.open(); // sent 700 ms ago
    await settle();
    await holder.release();
    await settle();
    expect(waiting.value.remainingMs()).toBe(DEADLINE_MS - 700);
    expect((await a.locks.inspect('stock')).ttlMs).toBe(LEASE_MS);
  });

  describe('leads to another request instead of a lease', () => {
    it.each([
      ['when less than half of it is left', 1_490],
      ['when all of it is over', DEADLINE_MS],
      ['when the lock in the store is over', LEASE_MS + 10],
    ])('%s', async (_, lateMs) => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      const message = gate();
      b.store.nextGrants(deliveredWhen(message.opened));
      b.store.fates.acquire = lostOnTheWay; // a heartbeat would find it
      await holder.release();
      await world.clock.advance(lateMs);
      expect(waiting.state).toBe('pending');
      const commands = b.store.sent('acquire').length;
      b.store.fates.acquire = answered;
      message.open();
      await settle();
      expect(b.store.sent('acquire').length).toBe(commands + 1);
      await world.clock.advance(3_000);
      expect(waiting.value.isHeld()).toBe(true);
      expect(b.store.sent('acquire').at(-1)!.owner).toBe(b.store.sent('acquire')[0]!.owner);
    });

    it('when the lease is a fixed one, which must have the requested length', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait({ watchdog: false });
      await world.clock.advance(600);
      await holder.release();
      await settle();
      expect(verbs(b)).toEqual(['acquire', 'acquire']);
      expect(waiting.value.remainingMs()).toBe(DEADLINE_MS);
      expect(waiting.value.fencingToken).toBe(b.store.grants[0]!.fencingToken);
    });

    it('when its stamp is from the future', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      b.store.nextGrants(grantLost);
      await holder.release();
      await settle();
      b.store.deliver({ ...b.store.grants[0]!, sentAt: world.clock.now() + 1 });
      await settle();
      expect(verbs(b)).toEqual(['acquire', 'acquire']);
      expect(waiting.value.remainingMs()).toBe(DEADLINE_MS);
    });
  });

  it('is replaced by the next heartbeat if it is lost', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await settle();
    b.store.nextGrants(grantLost);
    await holder.release();
    await world.clock.advance(1_250);
    expect(waiting.value.isHeld()).toBe(true);
    expect(b.store.sent('acquire')).toHaveLength(2);
  });

  describe('to a caller that gave up', () => {
    /** Its question is on its way still, and reaches the store after the withdrawal; the reply never comes. */
    async function departed() {
      const holder = await a.locks.acquire('stock');
      const arrival = new Deferred<void>();
      b.store.next('acquire', (execute) => arrival.promise.then(execute).then(() => new Promise<never>(() => {})));
      const waiting = wait({ waitMs: 500 });
      await world.clock.advance(600);
      expect(waiting.state).toBe('rejected');
      arrival.resolve();
      await settle();
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      const released = b.store.sent('release').length;
      return { holder, released };
    }

    it('is returned, once', async () => {
      const { holder, released } = await departed();
      const next = track(a.locks.acquire('stock', { waitMs: 10_000, strictOrder: true }));
      await settle();
      await holder.release();
      await settle();
      for (let i = 0; i < 100; i++) b.store.deliver(b.store.grants[0]!);
      await settle();
      expect(b.store.sent('release')).toHaveLength(released + 1);
      expect(next.value.isHeld()).toBe(true);
    });

    it('is not expected forever', async () => {
      await departed();
      for (let i = 0; i < 40; i++) {
        b.store.next('acquire', lostOnTheWay);
        const call = track(b.locks.acquire(`order:${i}`, { ...terms, waitMs: 100 }));
        await world.clock.advance(1_000);
        expect(call.state).toBe('rejected');
      }
      expect(b.locks.stats().lateGrants).toBeLessThan(12);
    });
  });

  describe('has no effect', () => {
    it('when it comes again while the lease lasts', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      await holder.release();
      await settle();
      b.store.deliver(b.store.grants[0]!);
      await settle();
      expect(waiting.value.isHeld()).toBe(true);
      expect(verbs(b)).toEqual(['acquire']);
    });

    it('when it is forged', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      const { fencingToken } = holder;
      const forged = { resource: 'stock', fencingToken, sentAt: world.clock.now(), isFor: () => false };
      b.store.deliver(forged);
      b.store.deliver({ ...forged, resource: 'never heard of' });
      await world.clock.advance(500);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('release')).toEqual([]);
      expect(await holder.verify()).toBe(true);
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(b.events).toMatchObject([{ type: 'waiting' }]);
    });
  });
});
