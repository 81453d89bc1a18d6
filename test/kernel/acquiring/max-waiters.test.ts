import { LockQueueFullError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { track } from '../../support/expect/tracked.js';

describe('maxWaiters', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = ({ locks }: Instance, maxWaiters: number, options: LockOptions = {}) =>
    track(locks.acquire('stock', { waitMs: Infinity, maxWaiters, ...options }));

  describe('in one process', () => {
    it('lets that many calls wait behind a holder of the process, and refuses one more at once', async () => {
      const holder = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const calls = [1, 2, 3].map(() => wait(a, 2));
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected']);
      expect(calls[2]!.error).toBeInstanceOf(LockQueueFullError);
      expect(calls[2]!.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        resource: 'stock',
        maxWaiters: 2,
        where: 'process',
        retryAfterMs: 3_000 - 32,
      });
      expect((calls[2]!.error as Error).message).toContain(
        'The queue for "stock" is full: 2 calls of this process are already waiting',
      );
      expect(eventsOf(a, 'notAcquired')).toMatchObject([{ resource: 'stock', error: { code: 'LOCK_QUEUE_FULL' } }]);
      await holder.release();
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'rejected']);
    });

    it('does not count the call that takes a free resource: in one turn, or one after the other', async () => {
      const states = async (calls: { state: string }[]) => (await settle(), calls.map(({ state }) => state));
      expect(await states([1, 2, 3].map(() => wait(a, 1)))).toEqual(['fulfilled', 'pending', 'rejected']);
      const apart: ReturnType<typeof wait>[] = [];
      for (let i = 0; i < 3; i++) {
        apart.push(track(a.locks.acquire('order', { waitMs: Infinity, maxWaiters: 1 })));
        await world.clock.advance(60);
      }
      expect(await states(apart)).toEqual(['fulfilled', 'pending', 'rejected']);
    });

    it('counts a pending request once it has to wait, and ends the newest calls above the limit', async () => {
      await a.locks.acquire('stock', { leaseMs: 3_000 });
      const calls = [wait(b, 1), wait(b, 1), wait(b, 2), wait(b, 1)];
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'rejected', 'pending', 'rejected']);
      expect(calls[1]!.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        where: 'process',
        holders: [{ instanceId: 'a' }],
      });
    });

    it('applies to the call that set it', async () => {
      await a.locks.acquire('stock');
      const calls = [wait(a, 5), wait(a, 5), wait(a, 1), wait(a, 5)];
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected', 'pending']);
    });

    it('has room again when one has given up, or has been served', async () => {
      const holder = await a.locks.acquire('stock');
      const controller = new AbortController();
      const first = wait(a, 1, { signal: controller.signal });
      controller.abort();
      const second = wait(a, 1);
      await holder.release();
      await settle();
      const third = wait(a, 1);
      await settle();
      expect([first, second, third].map(({ state }) => state)).toEqual(['rejected', 'fulfilled', 'pending']);
    });
  });

  describe('in the queue of the store', () => {
    it('lets that many processes wait, and refuses one more at once', async () => {
      const c = world.instance('c');
      const holder = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const inTime = wait(b, 1);
      await world.clock.advance(100);
      const late = wait(c, 1);
      await settle();
      expect(late.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        maxWaiters: 1,
        where: 'redis',
        retryAfterMs: 2_900,
      });
      expect((late.error as Error).message).toContain(
        '1 process is already waiting (maxWaiters), and the resource is held by a for 100 ms',
      );
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(c.store.commands.map(({ verb }) => verb)).toEqual(['acquire']); // nothing to withdraw
      await holder.release();
      await settle();
      expect(inTime.value.isHeld()).toBe(true);
      await inTime.value.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('lets a waiter keep its place, even if it has to ask for it', async () => {
      b.store.keepsNoPlaces();
      await a.locks.acquire('stock');
      const waiting = wait(b, 1);
      await world.clock.advance(10_000);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('acquire').length).toBeGreaterThan(5);
    });

    it('refuses the call for whom a lease is rotated, if it waited behind a holder of its process until then', async () => {
      const holder = await a.locks.acquire('stock', { strictOrder: true });
      const own = [wait(a, 1), wait(a, 5)];
      const others = ['c', 'd'].map((name) => wait(world.instance(name), 5));
      await settle();
      expect(own[1]!.state).toBe('pending');
      await holder.release();
      await settle();
      expect(eventsOf(a, 'released')).toHaveLength(1);
      expect(own[0]!.error).toMatchObject({ where: 'redis', maxWaiters: 1 });
      expect(own[1]!.state).toBe('pending');
      expect(others.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
      expect(world.server.listWaiters('stock')).toEqual(['d', 'a']);
    });
  });
});
