import assert from 'node:assert/strict';
import { assertEquals } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { everyMode, EXCLUSIVE, LONG_MS, newOwner, permits, take, WRITE } from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Contract of lock stores: an operator can end a lease. */
export function describeForceRelease({ describe, it }: QueueSuite, features: StoreFeatures): void {
  describe('forceRelease', () => {
    for (const wish of everyMode(features, permits(1, 1))) {
      it(`ends the lease with this token in ${wish.mode} mode, and grants the next`, async ({
        subject,
        world,
        holder,
        a,
        b,
      }) => {
        const owner = { ...newOwner(holder, 'stock'), ...wish };
        const token = await take(holder, owner);
        const waiter = await world.queued(a, wish.mode === 'read' ? WRITE : wish);
        assert.equal(await b.store.forceRelease('stock', token), true);
        await world.granted(a, waiter);
        assert.equal(await holder.verify(owner), false);
        assert.equal(await holder.renew(owner, LONG_MS), false);
        assert.equal(await holder.release(owner), false);
        assert.equal(await b.store.forceRelease('stock', token), false); // sent again
        assert.equal(await a.store.verify(waiter), true);
        await a.store.release(waiter);
        assert.equal(await subject.isEmpty(), true);
      });
    }

    it.onEveryServer('ends the lease of one reader and of no other', async ({ world, holder, a, b }) => {
      const [first, second] = [newOwner(a.store, 'stock', 'read'), newOwner(b.store, 'stock', 'read')];
      await take(a.store, first);
      const token = await take(b.store, second);
      const writer = await world.queued(a, WRITE);
      assert.equal(await holder.forceRelease('stock', token), true);
      assertEquals(await world.holders(), ['a']);
      assert.equal(await b.store.verify(second), false);
      assert.equal(await a.store.verify(first), true);
      await world.noOtherIsGranted();
      await a.store.release(first);
      await world.granted(a, writer);
    });

    if (features.semaphores) {
      it('grants the permits of one holder to the waiters', async ({ world, holder, a, b }) => {
        const token = await take(a.store, { ...newOwner(a.store, 'stock'), ...permits(2, 3) });
        await world.holding(b, permits(1, 3));
        const waiters = [await world.queued(b, permits(1, 3)), await world.queued(b, permits(1, 3))];
        assert.equal(await holder.forceRelease('stock', token), true);
        await world.granted(b, ...waiters);
        assertEquals(await world.holders(), ['b', 'b', 'b']);
      });
    }

    it('takes any token of the lease: 64 tokens belong to one lease', async ({ holder, b }) => {
      const owner = newOwner(holder, 'stock');
      const token = await take(holder, owner);
      assert.equal(await b.store.forceRelease('stock', token + 64), false);
      assert.equal(await b.store.forceRelease('stock', token - 1), false);
      assert.equal(await holder.verify(owner), true);
      assert.equal(await b.store.forceRelease('stock', token + 63), true);
      assert.equal(await holder.verify(owner), false);
    });

    it('ends nothing if no holder has this token', async ({ world, holder, a }) => {
      assert.equal(await holder.forceRelease('stock', 64), false);
      const owner = newOwner(holder, 'stock');
      const token = await take(holder, owner);
      await holder.release(owner);
      const next = await world.holding(a, EXCLUSIVE);
      assert.equal(await holder.forceRelease('stock', token), false);
      assert.equal(await holder.forceRelease('other', token), false);
      assert.equal(await a.store.verify(next), true);
    });

    it('leaves nothing behind', async ({ subject, holder, a }) => {
      const token = await take(holder, newOwner(holder, 'stock', 'read'));
      assert.equal(await a.store.forceRelease('stock', token), true);
      assert.equal(await subject.isEmpty(), true);
    });
  });
}
