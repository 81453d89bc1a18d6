import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { untimed } from '../../support/expect/untimed.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import { LONG_MS, PATIENT, permits, SHORT_MS, type Subject } from '../subjects/subject.js';

const ONE = permits(1, 3);
const TWO = permits(2, 3);
const ALL = permits(3, 3);

/** What every lock store keeps to: how many permits there are, and what becomes of those who take it for another number. */
export function describeSemaphoreSize(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  describe('of another size', () => {
    it.each([2, 4])('is refused (%i in place of 3), and nobody is queued by it', async (total) => {
      await world.holding(a, ONE);
      for (const queueing of [undefined, PATIENT]) {
        const reply = await world.ask(b, permits(1, total), queueing);
        expect(reply).toEqual({
          status: 'mismatch',
          ttlMs: expect.any(Number),
          found: { mode: 'semaphore', total: 3 },
        });
        expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
      }
      expect(await world.queue()).toEqual([]);
      expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 2 });
    });

    it('is granted when the last one has released: nobody remembers how many there were', async () => {
      const owner = await world.holding(a, permits(1, 3, true));
      await a.store.release(owner);
      await world.holding(b, permits(1, 2));
      expect((await holder.inspect('stock')).permits).toEqual({ total: 2, available: 1 });
      expect((await world.ask(a, ONE)).status).toBe('mismatch');
    });

    it('is granted when the last one has died', async () => {
      await world.holding(a, ONE, SHORT_MS);
      await world.expire();
      await world.holding(b, permits(1, 2));
      expect((await holder.inspect('stock')).permits).toEqual({ total: 2, available: 1 });
    });

    it('counts where it is a decision, for those who state another one too', async () => {
      await world.holding(a, ONE);
      await world.holding(b, permits(1, 5, true));
      expect((await holder.inspect('stock')).permits).toEqual({ total: 5, available: 3 });
      await world.holding(a, ALL);
      expect((await world.ask(a, ONE)).status).toBe('busy');
      expect((await holder.inspect('stock')).permits).toEqual({ total: 5, available: 0 });
    });

    it('counts from the moment at which its request is queued', async () => {
      const owner = await world.holding(a, ALL);
      const waiter = await world.queued(b, permits(1, 2, true));
      expect((await holder.inspect('stock')).permits).toEqual({ total: 2, available: 0 });
      await a.store.release(owner);
      await world.granted(b, waiter);
      expect((await holder.inspect('stock')).permits).toEqual({ total: 2, available: 1 });
    });

    it('counts not when its request is neither granted nor queued', async () => {
      await world.holding(a, ALL);
      expect((await world.ask(b, permits(3, 4, true))).status).toBe('busy');
      await world.queued(a, ONE);
      expect((await world.ask(b, permits(1, 1, true), { ...PATIENT, maxWaiters: 1 })).status).toBe('full');
      expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 0 });
    });

    it('counts no more than the decision before it', async () => {
      await world.holding(a, permits(1, 4, true));
      await world.holding(b, permits(1, 2, true));
      expect((await holder.inspect('stock')).permits).toEqual({ total: 4, available: 2 });
    });
  });

  describe('that is resized', () => {
    it('grants to those for whom there are permits now', async () => {
      await world.holding(world.holder, ALL);
      const waiters = [await world.queued(a, ONE), await world.queued(a, TWO)];
      await world.queued(b, ONE);
      expect(await holder.resize('stock', 6)).toBe(true);
      await world.granted(a, ...waiters);
      await world.nobodyElseIsGranted();
      expect(await holder.resize('stock', 6)).toBe(true); // sent again
      await world.nobodyElseIsGranted();
      expect((await holder.inspect('stock')).permits).toEqual({ total: 6, available: 0 });
    });

    it('evicts nobody when it gets smaller, and grants nobody until enough have released', async () => {
      const owners = [await world.holding(a, ONE), await world.holding(a, ONE), await world.holding(b, ONE)];
      expect(await holder.resize('stock', 1)).toBe(true);
      const waiter = await world.queued(b, ONE);
      expect((await holder.inspect('stock')).permits).toEqual({ total: 1, available: 0 });
      for (const owner of owners.slice(0, 2)) {
        expect(await a.store.verify(owner)).toBe(true);
        expect(await a.store.renew(owner, LONG_MS)).toBe(true);
        expect(await a.store.release(owner)).toBe(true);
        await world.nobodyElseIsGranted();
      }
      await b.store.release(owners[2]!);
      await world.granted(b, waiter);
    });

    it('takes everybody who asks for no more than there are, whatever total they state', async () => {
      await world.holding(a, ONE);
      await holder.resize('stock', 4);
      await world.holding(b, permits(1, 9));
      await world.holding(b, permits(2, 2));
      expect((await world.ask(a, ONE)).status).toBe('busy');
      const found = { mode: 'semaphore', total: 4 };
      expect(await world.ask(a, permits(5, 9), PATIENT)).toMatchObject({ status: 'mismatch', found });
      expect(await world.ask(a, permits(5, 9, true), PATIENT)).toMatchObject({ status: 'mismatch', found });
      expect(await world.queue()).toEqual([]);
    });

    it('drops those who wait for more than there are, who learn of it when they ask again', async () => {
      await world.holding(world.holder, ONE);
      const large = await world.queued(a, ALL);
      const small = await world.queued(b, ONE);
      await holder.resize('stock', 2);
      await world.granted(b, small);
      expect(await world.queue()).toEqual([]);
      const reply = await a.store.acquire(large, LONG_MS, PATIENT);
      expect(reply).toMatchObject({ status: 'mismatch', found: { mode: 'semaphore', total: 2 } });
    });

    it('is nothing where it is not in use', async () => {
      expect(await holder.resize('stock', 7)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
      await world.holding(a, ONE);
      expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 2 });
    });

    it.each(['exclusive', 'reentrant', 'read', 'write'] as const)(
      'is refused where it is a lock in %s mode',
      async (mode) => {
        await world.holding(a, { mode });
        const before = untimed(await holder.inspect('stock'));
        expect(await holder.resize('stock', 7)).toBe(false);
        expect(untimed(await holder.inspect('stock'))).toEqual({
          ...before,
          ttlMs: expect.any(Number),
          holders: [{ ...before.holders[0], ttlMs: expect.any(Number) }],
        });
      },
    );
  });

  describe('some of whose permits are released', () => {
    const stateOf = async (): Promise<[permits: (number | undefined)[], available: number | undefined]> => {
      const { holders, permits: inUse } = await holder.inspect('stock');
      return [holders.map((each) => each.permits), inUse?.available];
    };

    it('grants those who now fit, in their order, and the rest stays', async () => {
      const owner = await world.holding(world.holder, ALL);
      const first = await world.queued(a, ONE);
      const large = await world.queued(b, TWO);
      const last = await world.queued(a, ONE);
      expect(await holder.lowerPermits(owner, 2)).toBe(true);
      await world.granted(a, first);
      await world.nobodyElseIsGranted();
      expect(await stateOf()).toEqual([[2, 1], 0]);
      expect(await holder.release(owner)).toBe(true);
      await world.granted(b, large);
      expect(await a.store.release(first)).toBe(true);
      await world.granted(a, last);
    });

    it('frees nothing twice, whenever a command comes again', async () => {
      const owner = await world.holding(a, permits(5, 5));
      for (const [count, left] of [
        [4, 4],
        [4, 4],
        [2, 2],
        [4, 2], // late
        [2, 2],
        [5, 2],
      ] as const) {
        expect(await a.store.lowerPermits(owner, count)).toBe(true);
        expect(await stateOf()).toEqual([[left], 5 - left]);
      }
      expect(await a.store.release(owner)).toBe(true);
      expect(await a.store.lowerPermits(owner, 1)).toBe(false);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('neither shortens nor lengthens the lease, which keeps its token', async () => {
      const owner = await world.holding(a, ALL, LONG_MS);
      const [before] = untimed(await holder.inspect('stock')).holders;
      await a.store.lowerPermits(owner, 1);
      const [after] = untimed(await holder.inspect('stock')).holders;
      expect(after).toEqual({ ...before, permits: 1, ttlMs: expect.any(Number) });
      expect(after!.ttlMs).toBeLessThanOrEqual(before!.ttlMs);
      expect(after!.ttlMs).toBeGreaterThan(LONG_MS / 2);
      await a.store.renew(owner, SHORT_MS, true);
      await a.store.lowerPermits(owner, 1);
      await world.expire();
      expect((await holder.inspect('stock')).mode).toBeNull();
    });

    it('stays so when the lease is renewed, acquired again or transferred', async () => {
      const owner = await world.holding(a, ALL);
      await a.store.lowerPermits(owner, 2);
      await a.store.renew(owner, LONG_MS);
      expect((await a.store.acquire(owner, LONG_MS)).status).toBe('granted');
      expect(await stateOf()).toEqual([[2], 1]);
      const next = { ...owner, id: `${owner.id}-next` };
      await a.store.transfer(owner, { to: next.id, leaseMs: LONG_MS });
      expect(await a.store.lowerPermits(owner, 1)).toBe(false); // late
      expect(await stateOf()).toEqual([[2], 1]);
      expect(await a.store.lowerPermits(next, 1)).toBe(true);
      expect(await stateOf()).toEqual([[1], 2]);
    });

    it('grants no waiter where fewer are left than are held, after a resize', async () => {
      const owner = await world.holding(world.holder, ALL);
      await holder.resize('stock', 1);
      const waiter = await world.queued(a, permits(1, 1));
      await holder.lowerPermits(owner, 1);
      await world.nobodyElseIsGranted();
      await holder.release(owner);
      await world.granted(a, waiter);
    });

    it('is refused for an owner whose lease is over, and for one that only waits', async () => {
      const dead = await world.holding(a, TWO, SHORT_MS);
      await world.expire();
      expect(await a.store.lowerPermits(dead, 1)).toBe(false);
      await world.holding(a, ALL);
      const waiter = await world.queued(b, TWO);
      expect(await b.store.lowerPermits(waiter, 1)).toBe(false);
      expect(await stateOf()).toEqual([[3], 0]);
    });

    it.each(['exclusive', 'reentrant', 'read', 'write'] as const)('is refused in %s mode', async (mode) => {
      const owner = await world.holding(a, { mode });
      expect(await a.store.lowerPermits(owner, 1)).toBe(false);
      expect(await a.store.verify(owner)).toBe(true);
      expect(await a.store.release(owner)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
    });
  });

  describe.each(['exclusive', 'reentrant', 'read', 'write'] as const)('and a mutex in %s mode', (mode) => {
    it('are not the same: a request for the one is refused while the other is in use, and not queued', async () => {
      await world.holding(a, { mode });
      for (const queueing of [undefined, PATIENT]) {
        expect(await world.ask(b, ONE, queueing)).toEqual({
          status: 'mismatch',
          ttlMs: expect.any(Number),
          found: { mode, total: 1 },
        });
      }
      expect(await world.queue()).toEqual([]);
    });

    it('are not the same in the other direction either', async () => {
      const owner = await world.holding(a, ONE);
      for (const queueing of [undefined, PATIENT]) {
        expect(await world.ask(b, { mode }, queueing)).toEqual({
          status: 'mismatch',
          ttlMs: expect.any(Number),
          found: { mode: 'semaphore', total: 3 },
        });
      }
      expect(await world.queue()).toEqual([]);
      await a.store.release(owner);
      expect((await world.ask(b, { mode })).status).toBe('granted');
    });
  });
}
