import assert from 'node:assert/strict';
import {
  ANY_NUMBER,
  assertAbove,
  assertAtLeast,
  assertAtMost,
  assertBelow,
  assertContains,
  assertEquals,
  assertExcludes,
  assertLacks,
  assertMatches,
} from '../asserts.js';
import { describeForceRelease } from './force-release.js';
import type { QueueSuite } from '../queue-world.js';
import {
  enqueue,
  everyMode,
  LONG_MS,
  newOwner,
  permits,
  READ,
  REENTRANT,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Contract of lock stores: the view and the actions of operators. */
export function describeOperators(inWorld: QueueSuite, features: StoreFeatures): void {
  const { describe, it } = inWorld;

  describe('probe', () => {
    it.onEveryServer('finds no problem on any server, and leaves nothing behind', async ({ subject, a }) => {
      const { servers, needed, problems } = a.store.probe();
      assertEquals(problems, []);
      const answers = await Promise.all(servers);
      assertAtLeast(answers.length, needed);
      for (const answer of answers) assertEquals(answer, { roundTripMs: ANY_NUMBER, problems: [] });
      assert.equal(await subject.isEmpty(), true);
    });

    it('neither waits for a lock nor touches it, also if it is held', async ({ world, holder, a }) => {
      const owner = await world.holding(world.holder, WRITE);
      const { fencingToken } = (await holder.inspect(owner.resource)).holders[0]!;
      for (const answer of await Promise.all(a.store.probe().servers)) assertEquals(answer.problems, []);
      assert.equal((await holder.inspect(owner.resource)).holders[0]!.fencingToken, fencingToken);
      assert.equal(await holder.verify(owner), true);
    });

    it.onEveryServer('says of a closed store that it is closed, and sends nothing', async ({ a }) => {
      await a.store.close();
      const { servers, problems } = a.store.probe();
      assertEquals(servers, []);
      assertMatches(problems, [{ code: 'CLOSED', isFatal: true }]);
    });
  });

  describe('inspect', () => {
    it.onEveryServer('shows the waiters in order, with their modes, and no secret', async ({ world, a, b }) => {
      const owner = await world.holding(world.holder, WRITE);
      const waiters = [await world.queued(a, READ), await world.queued(b, WRITE), await world.queued(a, REENTRANT)];
      await world.queued(b, READ, { leaseMs: SHORT_MS });
      await world.expire();
      const state = untimed(await a.store.inspect('stock'));
      assertEquals(state.waiters, [
        { instanceId: 'a', mode: 'read' },
        { instanceId: 'b', mode: 'write' },
        { instanceId: 'a', mode: 'reentrant' },
      ]);
      for (const { id } of [owner, ...waiters]) {
        assertExcludes(JSON.stringify(state), id.slice(id.lastIndexOf('/') + 1));
      }
    });

    const wishes = everyMode(features);
    for (const wish of wishes) {
      it(`shows for how long it is held in mode ${wish.mode}, also after a renewal`, async ({ world, holder, a }) => {
        const began = Date.now();
        const owner = await world.holding(world.holder, wish);
        const heldMs = async () => (await a.store.inspect('stock')).holders[0]!.heldMs!;
        // A token says when it was minted, a millisecond late at most.
        assertBelow(await heldMs(), SHORT_MS + Date.now() - began);
        await world.expire();
        assertAtLeast(await heldMs(), 2 * SHORT_MS - 1);
        assert.equal(await holder.renew(owner, LONG_MS), true);
        assertAtLeast(await heldMs(), 2 * SHORT_MS - 1);
        assertLacks((await a.store.inspect('stock')).holders[0], 'isKept');
      });
    }

    for (const wish of wishes) {
      it(`shows a retained lock in mode ${wish.mode} after its release, until its minimum has passed`, async ({
        world,
        holder,
        a,
      }) => {
        const owner = await world.holding(world.holder, wish);
        await holder.retain(owner, { minHoldMs: LONG_MS, leftMs: LONG_MS });
        assertMatches((await a.store.inspect('stock')).holders, [{ instanceId: 'holder', isKept: true }]);
      });
    }

    it('shows what is left of the place of each waiter, which is whole again when it asks again', async ({
      world,
      a,
      b,
    }) => {
      await world.holding(world.holder, WRITE);
      const waiter = await world.queued(a, WRITE);
      const placeMs = async () => (await b.store.inspect('stock')).waiters[0]!.placeMs!;
      assertAtMost(await placeMs(), LONG_MS);
      await world.expire();
      const before = await placeMs();
      assertAtMost(before, LONG_MS - 2 * SHORT_MS + 1);
      assertAbove(before, 0);
      await enqueue(a.store, waiter);
      assertAbove(await placeMs(), before);
    });

    if (features.semaphores) {
      it('shows how many permits each waiter waits for', async ({ world, holder, a, b }) => {
        await world.holding(world.holder, permits(2, 3));
        await world.queued(a, permits(3, 3));
        await world.queued(b, permits(1, 3));
        const state = untimed(await holder.inspect('stock'));
        assertEquals(state.waiters, [
          { instanceId: 'a', mode: 'semaphore', permits: 3 },
          { instanceId: 'b', mode: 'semaphore', permits: 1 },
        ]);
        assertEquals(state.permits, { total: 3, available: 1 });
      });
    }

    it('shows the holders in the order of their tokens, also after a renewal', async ({ world, holder, a, b }) => {
      const readers = [await world.holding(b, READ), await world.holding(a, READ), await world.holding(b, READ)];
      await b.store.renew(readers[0]!, 3 * LONG_MS);
      await take(a.store, readers[1]!, 2 * LONG_MS);
      assertEquals(await world.holders(), ['b', 'a', 'b']);
      const { holders, ttlMs } = untimed(await holder.inspect('stock'));
      assert.equal(ttlMs, Math.max(...holders.map((one) => one.ttlMs)));
    });

    if (features.semaphores) {
      it('shows no size of a semaphore that is not in use', async ({ world, holder, a }) => {
        const owner = await world.holding(a, permits(1, 3));
        await a.store.release(owner);
        assertEquals(await holder.inspect('stock'), {
          resource: 'stock',
          mode: null,
          holders: [],
          ttlMs: 0,
          waiters: [],
        });
      });
    }

    it('changes nothing', async ({ world, holder, a }) => {
      const first = await world.holding(world.holder, READ, SHORT_MS);
      const waiter = await world.queued(a, WRITE);
      await world.expire();
      for (let i = 0; i < 3; i++) await holder.inspect('stock');
      await world.noOtherIsGranted();
      assert.equal(await holder.release(first), false);
      await world.granted(a, waiter);
    });
  });

  describe('list', () => {
    const { it } = inWorld.with(({ holder }) => ({
      listed: async (prefix: string, limit = 100) => (await holder.list(prefix, limit)).sort(),
    }));

    it.onEveryServer('shows what is held in any mode, each name once', async ({ world, a, b, listed }) => {
      const wishes = everyMode(features, permits(1, 2));
      for (const wish of wishes) await take(a.store, { ...newOwner(a.store, `order:${wish.mode}`), ...wish });
      await take(b.store, newOwner(b.store, 'order:read', 'read'));
      await world.waiting(b, 'order:exclusive');
      await take(a.store, newOwner(a.store, 'my order:1'));
      assertEquals(await listed('order:'), wishes.map(({ mode }) => `order:${mode}`).sort());
      assertEquals(await listed('order:re'), ['order:read', 'order:reentrant']);
      assert.equal((await listed('')).length, wishes.length + 1);
      assertEquals(await listed('orders'), []);
    });

    it('shows what is waited for, though its holder has died', async ({ world, a, listed }) => {
      const owner = await world.held();
      await world.waiting(a);
      await world.leaseEnds(owner);
      assertEquals(await listed(''), ['stock']);
    });

    it('shows no expired lease', async ({ world, holder, a, listed }) => {
      const owner = await world.held('released');
      await world.held('held');
      await take(a.store, newOwner(a.store, 'dead'), SHORT_MS);
      await take(a.store, newOwner(a.store, 'dead readers', 'read'), SHORT_MS);
      await holder.release(owner);
      await world.expire();
      assertEquals(await listed(''), ['held']);
    });

    it('shows nothing of claimed ticks, but the lock of a job that runs', async ({ a, listed }) => {
      const owner = newOwner(a.store, 'job');
      const claim = { owner, leaseMs: LONG_MS, claimTtlMs: LONG_MS, overlap: 'skip', takeOver: 'nothing' } as const;
      await a.jobs.claim({ resource: 'job', tick: 'noon' }, claim);
      assertEquals(await listed(''), ['job']);
      await a.store.release(owner);
      assertEquals(await listed(''), []);
    });

    for (const prefix of ['*', 'a*', '[ab]', 'a?', '\\a', '\\*', '{a}', '%7B', 'é', 'a b', ':', ']', '^', '[^a]']) {
      it(`takes the prefix ${JSON.stringify(prefix)} literally`, async ({ a, listed }) => {
        for (const name of [`${prefix}`, `${prefix}:1`, 'a', 'b', 'ab', `x${prefix}`, 'a-', '7B', '{', 'fence']) {
          await take(a.store, newOwner(a.store, name)).catch(() => {});
        }
        const all = await listed('');
        assertEquals(
          await listed(prefix),
          all.filter((name) => name.startsWith(prefix)),
        );
        assertContains(await listed(prefix), [prefix, `${prefix}:1`]);
      });
    }

    it.onEveryServer('shows as many as asked for, and no more', async ({ holder, a, listed }) => {
      for (let i = 0; i < 30; i++) await take(a.store, newOwner(a.store, `order:${i}`));
      const some = await holder.list('order:', 7);
      assert.equal(new Set(some).size, 7);
      assert.equal(
        some.every((name) => name.startsWith('order:')),
        true,
      );
      assert.equal((await listed('order:', 30)).length, 30);
      assert.equal((await listed('order:', 1)).length, 1);
    });
  });

  describeForceRelease(inWorld, features);
}
