import assert from 'node:assert/strict';
import type { Holder } from '../../../lib/kernel/api/holder.js';
import { assertAtLeast, assertAtMost, assertBelow, assertEquals } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { EXCLUSIVE, everyMode, LONG_MS, PATIENT, permits, SHORT_MS, take, WRITE } from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Differs from the previous length, and from another owner's. */
const OTHER_MS = LONG_MS / 2;

/**
 * Contract of lock stores: they store the length of a lease and of a place, so the remaining time shows the last
 * renewal.
 */
export function describeLeaseLengths(suite: QueueSuite, features: StoreFeatures): void {
  const { describe, it } = suite.with(({ b }) => ({
    /** The only holder, as an instance sees it that has nothing to do with it. */
    seen: async (): Promise<Holder> => {
      const { holders } = await b.store.inspect('stock');
      assert.equal(holders.length, 1);
      return holders[0]!;
    },
  }));

  for (const wish of everyMode(features)) {
    describe(`in ${wish.mode} mode`, () => {
      /** Excludes any other holder. */
      const whole = wish.permits ? permits(3, 3) : WRITE;

      it('is the length that was asked for, in a state and in an answer', async ({ world, a, b, seen }) => {
        await world.holding(a, wish, OTHER_MS);
        const { leaseMs, ttlMs } = await seen();
        assert.equal(leaseMs, OTHER_MS);
        assertAtMost(ttlMs, leaseMs);
        const reply = await world.ask(b, whole);
        assert.equal('seen' in reply ? reply.seen?.holders[0]?.leaseMs : undefined, OTHER_MS);
      });

      it('is the length of the last renewal, longer or exact', async ({ world, a, seen }) => {
        const owner = await world.holding(a, wish, OTHER_MS);
        await a.store.renew(owner, LONG_MS);
        assert.equal((await seen()).leaseMs, LONG_MS);
        await a.store.renew(owner, OTHER_MS, true);
        assert.equal((await seen()).leaseMs, OTHER_MS);
        await take(a.store, owner, LONG_MS);
        assert.equal((await seen()).leaseMs, LONG_MS);
      });

      it('is what was left, where a renewal did not make the lease longer', async ({ world, subject, a, seen }) => {
        const owner = await world.holding(a, wish);
        await subject.pass(SHORT_MS);
        await a.store.renew(owner, OTHER_MS);
        const { leaseMs, ttlMs } = await seen();
        assertAtMost(leaseMs, LONG_MS - SHORT_MS + 1);
        assertAtLeast(leaseMs, ttlMs);
        assertBelow(leaseMs - ttlMs, OTHER_MS / 2);
      });

      it('stays if the label changes', async ({ world, a, seen }) => {
        const owner = await world.holding(a, wish, OTHER_MS);
        await a.store.label(owner, '{"group":"x"}');
        const { leaseMs, label } = await seen();
        assertEquals([leaseMs, label], [OTHER_MS, { group: 'x' }]);
      });

      it('is none once it was released, and stays taken', async ({ world, a, seen }) => {
        const owner = await world.holding(a, wish);
        await a.store.retain(owner, { minHoldMs: OTHER_MS, leftMs: OTHER_MS });
        const { leaseMs, isKept } = await seen();
        assertEquals([leaseMs, isKept], [0, true]);
      });

      it('of a place is what its waiter asks for, and becomes that of its lease', async ({
        world,
        a,
        holder,
        seen,
      }) => {
        const owner = await world.holding(world.holder, whole);
        const waiter = await world.queued(a, wish, { leaseMs: OTHER_MS });
        const [place] = (await holder.inspect('stock')).waiters;
        assert.equal(place!.leaseMs, OTHER_MS);
        assertAtMost(place!.placeMs!, OTHER_MS);
        await a.store.acquire(waiter, LONG_MS, PATIENT);
        assert.equal((await holder.inspect('stock')).waiters[0]!.leaseMs, LONG_MS);
        await holder.release(owner);
        await world.granted(a, waiter);
        const { leaseMs, ttlMs } = await seen();
        assert.equal(leaseMs, LONG_MS);
        assertAtMost(ttlMs, leaseMs);
      });
    });
  }

  it('is that of a keep, where the place was kept', async ({ world, a, holder }) => {
    await world.held();
    const waiter = await world.waiting(a, 'stock', { leaseMs: OTHER_MS });
    if (!a.store.keepPlaces) return;
    await a.store.keepPlaces([{ waiter, leaseMs: LONG_MS }], 1);
    const [place] = (await holder.inspect('stock')).waiters;
    assert.equal(place!.leaseMs, LONG_MS);
  });

  it('is that of an entry and of a downgrade', async ({ world, a, seen }) => {
    const writer = await world.holding(a, WRITE, OTHER_MS);
    await a.store.setDepth(writer, 2, LONG_MS);
    const { leaseMs, depth } = await seen();
    assertEquals([leaseMs, depth], [LONG_MS, 2]);
    await a.store.downgrade(writer, OTHER_MS);
    assertAtLeast((await seen()).leaseMs, OTHER_MS);
  });

  it.onEveryServer(
    'tells since when a waiter that was granted has been silent',
    async ({ world, subject, a, holder, seen }) => {
      const owner = await world.held();
      const waiter = await world.queued(a, EXCLUSIVE);
      await subject.pass(SHORT_MS);
      await holder.release(owner);
      await world.granted(a, waiter);
      const { leaseMs, ttlMs } = await seen();
      assertAtLeast(leaseMs - ttlMs, features.oneQueue ? SHORT_MS - 1 : 0);
    },
  );
}
