import { ACQUIRE_MODES } from '../../../lib/kernel/api/lock-mode.js';
import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { LONG_MS, permits, SHORT_MS, untimed } from '../requests.js';

const ONE = permits(1, 3);
const TWO = permits(2, 3);
const ALL = permits(3, 3);

/** Contract of lock stores: a holder can release some of its permits. */
export function describeLowerPermits(inWorld: QueueSuite): void {
  const { describe } = inWorld;

  describe('a holder that releases some of its permits', () => {
    const { it } = inWorld.with(({ holder }) => ({
      stateOf: async (): Promise<[permits: (number | undefined)[], available: number | undefined]> => {
        const { holders, permits: inUse } = await holder.inspect('stock');
        return [holders.map((each) => each.permits), inUse?.available];
      },
    }));

    it.onEveryServer(
      'grants the waiters that now fit, in their order, and the rest stays',
      async ({ world, holder, a, b, stateOf }) => {
        const owner = await world.holding(world.holder, ALL);
        const first = await world.queued(a, ONE);
        const large = await world.queued(b, TWO);
        const last = await world.queued(a, ONE);
        assert.equal(await holder.lowerPermits(owner, 2), true);
        await world.granted(a, first);
        await world.noOtherIsGranted();
        assertEquals(await stateOf(), [[2, 1], 0]);
        assert.equal(await holder.release(owner), true);
        await world.granted(b, large);
        assert.equal(await a.store.release(first), true);
        await world.granted(a, last);
      },
    );

    it('frees nothing twice, whenever a command comes again', async ({ subject, world, a, stateOf }) => {
      const owner = await world.holding(a, permits(5, 5));
      for (const [count, left] of [
        [4, 4],
        [4, 4],
        [2, 2],
        [4, 2], // late
        [2, 2],
        [5, 2],
      ] as const) {
        assert.equal(await a.store.lowerPermits(owner, count), true);
        assertEquals(await stateOf(), [[left], 5 - left]);
      }
      assert.equal(await a.store.release(owner), true);
      assert.equal(await a.store.lowerPermits(owner, 1), false);
      assert.equal(await subject.isEmpty(), true);
    });

    it('neither shortens nor lengthens the lease, which keeps its token', async ({ world, holder, a }) => {
      const owner = await world.holding(a, ALL, LONG_MS);
      const [before] = untimed(await holder.inspect('stock')).holders;
      await a.store.lowerPermits(owner, 1);
      const [after] = untimed(await holder.inspect('stock')).holders;
      assertEquals(after, { ...before, permits: 1, ttlMs: ANY_NUMBER });
      assertAtMost(after!.ttlMs, before!.ttlMs);
      assertAbove(after!.ttlMs, LONG_MS / 2);
      await a.store.renew(owner, SHORT_MS, true);
      await a.store.lowerPermits(owner, 1);
      await world.expire();
      assert.equal((await holder.inspect('stock')).mode, null);
    });

    it('stays so when the lease is renewed or acquired again', async ({ world, a, stateOf }) => {
      const owner = await world.holding(a, ALL);
      await a.store.lowerPermits(owner, 2);
      await a.store.renew(owner, LONG_MS);
      assert.equal((await a.store.acquire(owner, LONG_MS)).status, 'granted');
      assertEquals(await stateOf(), [[2], 1]);
      assert.equal(await a.store.lowerPermits(owner, 1), true);
      assertEquals(await stateOf(), [[1], 2]);
    });

    it('grants no waiter where fewer are left than are held, after a resize', async ({ world, holder, a }) => {
      const owner = await world.holding(world.holder, ALL);
      await holder.resize('stock', 1);
      const waiter = await world.queued(a, permits(1, 1));
      await holder.lowerPermits(owner, 1);
      await world.noOtherIsGranted();
      await holder.release(owner);
      await world.granted(a, waiter);
    });

    it('is refused for an owner whose lease has expired, and for one that only waits', async ({
      world,
      a,
      b,
      stateOf,
    }) => {
      const dead = await world.holding(a, TWO, SHORT_MS);
      await world.expire();
      assert.equal(await a.store.lowerPermits(dead, 1), false);
      await world.holding(a, ALL);
      const waiter = await world.queued(b, TWO);
      assert.equal(await b.store.lowerPermits(waiter, 1), false);
      assertEquals(await stateOf(), [[3], 0]);
    });

    for (const mode of ACQUIRE_MODES) {
      it(`is refused in ${mode} mode`, async ({ subject, world, a }) => {
        const owner = await world.holding(a, { mode });
        assert.equal(await a.store.lowerPermits(owner, 1), false);
        assert.equal(await a.store.verify(owner), true);
        assert.equal(await a.store.release(owner), true);
        assert.equal(await subject.isEmpty(), true);
      });
    }
  });
}
