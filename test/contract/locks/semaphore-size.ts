import { ACQUIRE_MODES } from '../../../lib/kernel/api/lock-mode.js';
import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import { describeLowerPermits } from './lower-permits.js';
import type { QueueSuite } from '../queue-world.js';
import { LONG_MS, PATIENT, permits, SHORT_MS, untimed } from '../requests.js';

const ONE = permits(1, 3);
const TWO = permits(2, 3);
const ALL = permits(3, 3);

/** Contract of lock stores: the number of permits, and requests that state another number. */
export function describeSemaphoreSize(inWorld: QueueSuite): void {
  const { describe, it } = inWorld;

  describe('a request for another size', () => {
    for (const total of [2, 4]) {
      it(`is refused (${total} in place of 3), and the request is not queued`, async ({ world, holder, a, b }) => {
        await world.holding(a, ONE);
        for (const queueing of [undefined, PATIENT]) {
          const reply = await world.ask(b, permits(1, total), queueing);
          assertEquals(reply, {
            status: 'mismatch',
            ttlMs: ANY_NUMBER,
            found: { mode: 'semaphore', total: 3 },
          });
          assertAbove((reply as { ttlMs: number }).ttlMs, LONG_MS / 2);
        }
        assertEquals(await world.queue(), []);
        assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 2 });
      });
    }

    it('is granted when the last holder has released: the old size is forgotten', async ({ world, holder, a, b }) => {
      const owner = await world.holding(a, permits(1, 3, true));
      await a.store.release(owner);
      await world.holding(b, permits(1, 2));
      assertEquals((await holder.inspect('stock')).permits, { total: 2, available: 1 });
      assert.equal((await world.ask(a, ONE)).status, 'mismatch');
    });

    it('is granted when the last holder has died', async ({ world, holder, a, b }) => {
      await world.holding(a, ONE, SHORT_MS);
      await world.expire();
      await world.holding(b, permits(1, 2));
      assertEquals((await holder.inspect('stock')).permits, { total: 2, available: 1 });
    });

    it('counts if the request resizes, also for requests that state another size', async ({ world, holder, a, b }) => {
      await world.holding(a, ONE);
      await world.holding(b, permits(1, 5, true));
      assertEquals((await holder.inspect('stock')).permits, { total: 5, available: 3 });
      await world.holding(a, ALL);
      assert.equal((await world.ask(a, ONE)).status, 'busy');
      assertEquals((await holder.inspect('stock')).permits, { total: 5, available: 0 });
    });

    it('counts from the moment at which its request is queued', async ({ world, holder, a, b }) => {
      const owner = await world.holding(a, ALL);
      const waiter = await world.queued(b, permits(1, 2, true));
      assertEquals((await holder.inspect('stock')).permits, { total: 2, available: 0 });
      await a.store.release(owner);
      await world.granted(b, waiter);
      assertEquals((await holder.inspect('stock')).permits, { total: 2, available: 1 });
    });

    it('does not count if its request is neither granted nor queued', async ({ world, holder, a, b }) => {
      await world.holding(a, ALL);
      assert.equal((await world.ask(b, permits(3, 4, true))).status, 'busy');
      await world.queued(a, ONE);
      assert.equal((await world.ask(b, permits(1, 1, true), { ...PATIENT, maxWaiters: 1 })).status, 'full');
      assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 0 });
    });

    it('does not count if an earlier request has resized', async ({ world, holder, a, b }) => {
      await world.holding(a, permits(1, 4, true));
      await world.holding(b, permits(1, 2, true));
      assertEquals((await holder.inspect('stock')).permits, { total: 4, available: 2 });
    });
  });

  describe('a semaphore that is resized', () => {
    it.onEveryServer('grants the waiters for which there are permits now', async ({ world, holder, a, b }) => {
      await world.holding(world.holder, ALL);
      const waiters = [await world.queued(a, ONE), await world.queued(a, TWO)];
      await world.queued(b, ONE);
      assert.equal(await holder.resize('stock', 6), true);
      await world.granted(a, ...waiters);
      await world.noOtherIsGranted();
      assert.equal(await holder.resize('stock', 6), true); // sent again
      await world.noOtherIsGranted();
      assertEquals((await holder.inspect('stock')).permits, { total: 6, available: 0 });
    });

    it('keeps its holders when it gets smaller, and grants no waiter until enough have released', async ({
      world,
      holder,
      a,
      b,
    }) => {
      const owners = [await world.holding(a, ONE), await world.holding(a, ONE), await world.holding(b, ONE)];
      assert.equal(await holder.resize('stock', 1), true);
      const waiter = await world.queued(b, ONE);
      assertEquals((await holder.inspect('stock')).permits, { total: 1, available: 0 });
      for (const owner of owners.slice(0, 2)) {
        assert.equal(await a.store.verify(owner), true);
        assert.equal(await a.store.renew(owner, LONG_MS), true);
        assert.equal(await a.store.release(owner), true);
        await world.noOtherIsGranted();
      }
      await b.store.release(owners[2]!);
      await world.granted(b, waiter);
    });

    it('grants requests for no more permits than there are, for any total that they state', async ({
      world,
      holder,
      a,
      b,
    }) => {
      await world.holding(a, ONE);
      await holder.resize('stock', 4);
      await world.holding(b, permits(1, 9));
      await world.holding(b, permits(2, 2));
      assert.equal((await world.ask(a, ONE)).status, 'busy');
      const found = { mode: 'semaphore', total: 4 };
      assertMatches(await world.ask(a, permits(5, 9), PATIENT), { status: 'mismatch', found });
      assertMatches(await world.ask(a, permits(5, 9, true), PATIENT), { status: 'mismatch', found });
      assertEquals(await world.queue(), []);
    });

    it('drops waiters for more permits than there are: they learn of it when they ask again', async ({
      world,
      holder,
      a,
      b,
    }) => {
      await world.holding(world.holder, ONE);
      const large = await world.queued(a, ALL);
      const small = await world.queued(b, ONE);
      await holder.resize('stock', 2);
      await world.granted(b, small);
      assertEquals(await world.queue(), []);
      const reply = await a.store.acquire(large, LONG_MS, PATIENT);
      assertMatches(reply, { status: 'mismatch', found: { mode: 'semaphore', total: 2 } });
    });

    it('changes nothing if it is not in use', async ({ subject, world, holder, a }) => {
      assert.equal(await holder.resize('stock', 7), true);
      assert.equal(await subject.isEmpty(), true);
      await world.holding(a, ONE);
      assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 2 });
    });

    for (const mode of ACQUIRE_MODES) {
      it(`is refused if it is a lock in ${mode} mode`, async ({ world, holder, a }) => {
        await world.holding(a, { mode });
        const before = untimed(await holder.inspect('stock'));
        assert.equal(await holder.resize('stock', 7), false);
        assertEquals(untimed(await holder.inspect('stock')), {
          ...before,
          ttlMs: ANY_NUMBER,
          holders: [{ ...before.holders[0], ttlMs: ANY_NUMBER }],
        });
      });
    }
  });

  describeLowerPermits(inWorld);

  for (const mode of ACQUIRE_MODES) {
    describe(`a semaphore and a mutex in ${mode} mode`, () => {
      it('are not the same: a request for the one is refused while the other is in use, and not queued', async ({
        world,
        a,
        b,
      }) => {
        await world.holding(a, { mode });
        for (const queueing of [undefined, PATIENT]) {
          assertEquals(await world.ask(b, ONE, queueing), {
            status: 'mismatch',
            ttlMs: ANY_NUMBER,
            found: { mode, total: 1 },
          });
        }
        assertEquals(await world.queue(), []);
      });

      it('are not the same in the other direction either', async ({ world, a, b }) => {
        const owner = await world.holding(a, ONE);
        for (const queueing of [undefined, PATIENT]) {
          assertEquals(await world.ask(b, { mode }, queueing), {
            status: 'mismatch',
            ttlMs: ANY_NUMBER,
            found: { mode: 'semaphore', total: 3 },
          });
        }
        assertEquals(await world.queue(), []);
        await a.store.release(owner);
        assert.equal((await world.ask(b, { mode })).status, 'granted');
      });
    });
  }
}
