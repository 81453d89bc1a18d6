import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  enqueue,
  newOwner,
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
  permits,
  possible,
  READ,
  REENTRANT,
  SHORT_MS,
  type Subject,
  take,
  WRITE,
} from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

/** What every lock store keeps to: what an operator sees, and what he may do. */
export function describeOperators(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  describe('probe', () => {
    it('finds every server well, and leaves nothing behind', async () => {
      const other = await createSubject();
      try {
        const { store } = await other.open('only');
        const { servers, needed, problems } = store.probe();
        expect(problems).toEqual([]);
        const answers = await Promise.all(servers);
        expect(answers.length).toBeGreaterThanOrEqual(needed);
        for (const answer of answers) expect(answer).toEqual({ roundTripMs: expect.any(Number), problems: [] });
        expect(await other.isEmpty()).toBe(true);
      } finally {
        await other.close();
      }
    });

    it('neither waits for a lock nor touches it, also where all are held', async () => {
      const owner = await world.holding(world.holder, WRITE);
      const { fencingToken } = (await holder.inspect(owner.resource)).holders[0]!;
      for (const answer of await Promise.all(a.store.probe().servers)) expect(answer.problems).toEqual([]);
      expect((await holder.inspect(owner.resource)).holders[0]!.fencingToken).toBe(fencingToken);
      expect(await holder.verify(owner)).toBe(true);
    });

    it('says of a closed store that it is closed, and sends nothing', async () => {
      await a.store.close();
      const { servers, problems } = a.store.probe();
      expect(servers).toEqual([]);
      expect(problems).toMatchObject([{ code: 'CLOSED', isFatal: true }]);
    });
  });

  describe('inspect', () => {
    it('shows who waits, for what, in order, and no secret', async () => {
      const owner = await world.holding(world.holder, WRITE);
      const waiters = [await world.queued(a, READ), await world.queued(b, WRITE), await world.queued(a, REENTRANT)];
      await world.queued(b, READ, { leaseMs: SHORT_MS });
      await world.expire();
      const state = untimed(await a.store.inspect('stock'));
      expect(state.waiters).toEqual([
        { instanceId: 'a', mode: 'read' },
        { instanceId: 'b', mode: 'write' },
        { instanceId: 'a', mode: 'reentrant' },
      ]);
      for (const { id } of [owner, ...waiters]) {
        expect(JSON.stringify(state)).not.toContain(id.slice(id.lastIndexOf('/') + 1));
      }
    });

    const everyMode = possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, permits(2, 3));
    it.each(everyMode)('shows for how long it is held in mode $mode, also after a renewal', async (wish) => {
      const began = Date.now();
      const owner = await world.holding(world.holder, wish);
      const heldMs = async () => (await a.store.inspect('stock')).holders[0]!.heldMs!;
      // A token says when it was minted, a millisecond late at most.
      expect(await heldMs()).toBeLessThan(SHORT_MS + Date.now() - began);
      await world.expire();
      expect(await heldMs()).toBeGreaterThanOrEqual(2 * SHORT_MS - 1);
      expect(await holder.renew(owner, LONG_MS)).toBe(true);
      expect(await heldMs()).toBeGreaterThanOrEqual(2 * SHORT_MS - 1);
      expect((await a.store.inspect('stock')).holders[0]).not.toHaveProperty('isKept');
    });

    it.each(everyMode)('shows what is kept after its release in mode $mode, until it is over', async (wish) => {
      const owner = await world.holding(world.holder, wish);
      await holder.retain(owner, { minHoldMs: LONG_MS, leftMs: LONG_MS });
      expect((await a.store.inspect('stock')).holders).toMatchObject([{ instanceId: 'holder', isKept: true }]);
    });

    it('shows what is left of the place of each waiter, which is whole again when it asks again', async () => {
      await world.holding(world.holder, WRITE);
      const waiter = await world.queued(a, WRITE);
      const placeMs = async () => (await b.store.inspect('stock')).waiters[0]!.placeMs!;
      expect(await placeMs()).toBeLessThanOrEqual(LONG_MS);
      await world.expire();
      const before = await placeMs();
      expect(before).toBeLessThanOrEqual(LONG_MS - 2 * SHORT_MS + 1);
      expect(before).toBeGreaterThan(0);
      await enqueue(a.store, waiter);
      expect(await placeMs()).toBeGreaterThan(before);
    });

    if (features.semaphores) {
      it('shows how many permits somebody waits for', async () => {
        await world.holding(world.holder, permits(2, 3));
        await world.queued(a, permits(3, 3));
        await world.queued(b, permits(1, 3));
        const state = untimed(await holder.inspect('stock'));
        expect(state.waiters).toEqual([
          { instanceId: 'a', mode: 'semaphore', permits: 3 },
          { instanceId: 'b', mode: 'semaphore', permits: 1 },
        ]);
        expect(state.permits).toEqual({ total: 3, available: 1 });
      });
    }

    it('shows those who hold it in the order of their tokens, whoever asked again or renewed since', async () => {
      const readers = [await world.holding(b, READ), await world.holding(a, READ), await world.holding(b, READ)];
      await b.store.renew(readers[0]!, 3 * LONG_MS);
      await take(a.store, readers[1]!, 2 * LONG_MS);
      expect(await world.holders()).toEqual(['b', 'a', 'b']);
      const { holders, ttlMs } = untimed(await holder.inspect('stock'));
      expect(ttlMs).toBe(Math.max(...holders.map((one) => one.ttlMs)));
    });

    if (features.semaphores) {
      it('shows no size of a semaphore that nobody uses', async () => {
        const owner = await world.holding(a, permits(1, 3));
        await a.store.release(owner);
        expect(await holder.inspect('stock')).toEqual({
          resource: 'stock',
          mode: null,
          holders: [],
          ttlMs: 0,
          waiters: [],
        });
      });
    }

    it('changes nothing', async () => {
      const first = await world.holding(world.holder, READ, SHORT_MS);
      const waiter = await world.queued(a, WRITE);
      await world.expire();
      for (let i = 0; i < 3; i++) await holder.inspect('stock');
      await world.nobodyElseIsGranted();
      expect(await holder.release(first)).toBe(false);
      await world.granted(a, waiter);
    });
  });

  describe('list', () => {
    const listed = async (prefix: string, limit = 100) => (await holder.list(prefix, limit)).sort();

    it('shows what is held, in whatever mode, each name once', async () => {
      const wishes = possible(features, EXCLUSIVE, REENTRANT, READ, WRITE, permits(1, 2));
      for (const wish of wishes) await take(a.store, { ...newOwner(a.store, `order:${wish.mode}`), ...wish });
      await take(b.store, newOwner(b.store, 'order:read', 'read'));
      await world.waiting(b, 'order:exclusive');
      await take(a.store, newOwner(a.store, 'my order:1'));
      expect(await listed('order:')).toEqual(wishes.map(({ mode }) => `order:${mode}`).sort());
      expect(await listed('order:re')).toEqual(['order:read', 'order:reentrant']);
      expect(await listed('')).toHaveLength(wishes.length + 1);
      expect(await listed('orders')).toEqual([]);
    });

    it('shows what is waited for, though its holder has died', async () => {
      const owner = await world.held();
      await world.waiting(a);
      await world.leaseEnds(owner);
      expect(await listed('')).toEqual(['stock']);
    });

    it('shows nothing of what is over', async () => {
      const owner = await world.held('released');
      await world.held('held');
      await take(a.store, newOwner(a.store, 'dead'), SHORT_MS);
      await take(a.store, newOwner(a.store, 'dead readers', 'read'), SHORT_MS);
      await holder.release(owner);
      await world.expire();
      expect(await listed('')).toEqual(['held']);
    });

    it('shows nothing of claimed ticks, but the lock of a job that runs', async () => {
      const owner = newOwner(a.store, 'job');
      const claim = { owner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', takeOver: 'nothing' } as const;
      await a.tickStore.claim({ resource: 'job', tick: 'noon' }, claim);
      expect(await listed('')).toEqual(['job']);
      await a.store.release(owner);
      expect(await listed('')).toEqual([]);
    });

    it.each(['*', 'a*', '[ab]', 'a?', '\\a', '\\*', '{a}', '%7B', 'é', 'a b', ':', ']', '^', '[^a]'])(
      'takes the prefix %j literally',
      async (prefix) => {
        for (const name of [`${prefix}`, `${prefix}:1`, 'a', 'b', 'ab', `x${prefix}`, 'a-', '7B', '{', 'fence']) {
          await take(a.store, newOwner(a.store, name)).catch(() => {});
        }
        const all = await listed('');
        expect(await listed(prefix)).toEqual(all.filter((name) => name.startsWith(prefix)));
        expect(await listed(prefix)).toEqual(expect.arrayContaining([prefix, `${prefix}:1`]));
      },
    );

    it('shows as many as asked for, and no more', async () => {
      for (let i = 0; i < 30; i++) await take(a.store, newOwner(a.store, `order:${i}`));
      const some = await holder.list('order:', 7);
      expect(new Set(some).size).toBe(7);
      expect(some.every((name) => name.startsWith('order:'))).toBe(true);
      expect(await listed('order:', 30)).toHaveLength(30);
      expect(await listed('order:', 1)).toHaveLength(1);
    });
  });

  describe('forceRelease', () => {
    it.each(possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, permits(1, 1)))(
      'ends the lease with this token in $mode mode, and grants the next',
      async (wish) => {
        const owner = { ...newOwner(holder, 'stock'), ...wish };
        const token = await take(holder, owner);
        const waiter = await world.queued(a, wish.mode === 'read' ? WRITE : wish);
        expect(await b.store.forceRelease('stock', token)).toBe(true);
        await world.granted(a, waiter);
        expect(await holder.verify(owner)).toBe(false);
        expect(await holder.renew(owner, LONG_MS)).toBe(false);
        expect(await holder.release(owner)).toBe(false);
        expect(await b.store.forceRelease('stock', token)).toBe(false); // sent again
        expect(await a.store.verify(waiter)).toBe(true);
        await a.store.release(waiter);
        expect(await subject.isEmpty()).toBe(true);
      },
    );

    it('ends the lease of one reader and of no other', async () => {
      const [first, second] = [newOwner(a.store, 'stock', 'read'), newOwner(b.store, 'stock', 'read')];
      await take(a.store, first);
      const token = await take(b.store, second);
      const writer = await world.queued(a, WRITE);
      expect(await holder.forceRelease('stock', token)).toBe(true);
      expect(await world.holders()).toEqual(['a']);
      expect(await b.store.verify(second)).toBe(false);
      expect(await a.store.verify(first)).toBe(true);
      await world.nobodyElseIsGranted();
      await a.store.release(first);
      await world.granted(a, writer);
    });

    if (features.semaphores) {
      it('gives the permits of one holder to those who wait', async () => {
        const token = await take(a.store, { ...newOwner(a.store, 'stock'), ...permits(2, 3) });
        await world.holding(b, permits(1, 3));
        const waiters = [await world.queued(b, permits(1, 3)), await world.queued(b, permits(1, 3))];
        expect(await holder.forceRelease('stock', token)).toBe(true);
        await world.granted(b, ...waiters);
        expect(await world.holders()).toEqual(['b', 'b', 'b']);
      });
    }

    it('takes any token of the storeLease: they are of one tick', async () => {
      const owner = newOwner(holder, 'stock');
      const token = await take(holder, owner);
      expect(await b.store.forceRelease('stock', token + 32)).toBe(false);
      expect(await b.store.forceRelease('stock', token - 1)).toBe(false);
      expect(await holder.verify(owner)).toBe(true);
      expect(await b.store.forceRelease('stock', token + 31)).toBe(true);
      expect(await holder.verify(owner)).toBe(false);
    });

    it('ends nothing where nobody has this token', async () => {
      expect(await holder.forceRelease('stock', 32)).toBe(false);
      const owner = newOwner(holder, 'stock');
      const token = await take(holder, owner);
      await holder.release(owner);
      const next = await world.holding(a, EXCLUSIVE);
      expect(await holder.forceRelease('stock', token)).toBe(false);
      expect(await holder.forceRelease('other', token)).toBe(false);
      expect(await a.store.verify(next)).toBe(true);
    });

    it('leaves nothing behind', async () => {
      const token = await take(holder, newOwner(holder, 'stock', 'read'));
      expect(await a.store.forceRelease('stock', token)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
    });
  });
}
