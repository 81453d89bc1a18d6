import assert from 'node:assert/strict';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { ANY_NUMBER, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import {
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  permits,
  possible,
  READ,
  REENTRANT,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Contract of lock stores: downgrade from writer to reader. */
export function describeDowngrade({ it }: QueueSuite, features: StoreFeatures): void {
  it.onEveryServer(
    'keeps the token, and admits the readers that are next, not the writer behind them',
    async ({ world, holder, a, b }) => {
      const writer = newOwner(holder, 'stock', 'write');
      const token = await take(holder, writer);
      await holder.setDepth(writer, 3, LONG_MS);
      const readers = [await world.queued(a, READ), await world.queued(a, READ)];
      const second = await world.queued(b, WRITE);
      await world.queued(a, READ);
      assert.equal(await holder.downgrade(writer, LONG_MS), true);
      await world.granted(a, ...readers);
      await world.noOtherIsGranted();
      const state = untimed(await holder.inspect('stock'));
      assertMatches(state, { mode: 'read', waiters: [{ instanceId: 'b' }, { instanceId: 'a' }] });
      assert.equal(state.holders.length, 3);
      assertEquals(state.holders[0], {
        instanceId: 'holder',
        fencingToken: token,
        ttlMs: ANY_NUMBER,
        depth: 1,
      });
      await holder.release(writer);
      for (const reader of readers) await a.store.release(reader);
      await world.granted(b, second);
    },
  );

  it('admits no waiter if a writer is next', async ({ world, holder, a, b }) => {
    const writer = await world.holding(world.holder, WRITE);
    await world.queued(a, WRITE);
    await world.queued(b, READ);
    assert.equal(await holder.downgrade(writer, LONG_MS), true);
    await world.noOtherIsGranted();
    assertEquals(await world.holders(), ['holder']);
  });

  it('lets new readers in if there is no waiter', async ({ world, holder, a, b }) => {
    const writer = await world.holding(world.holder, WRITE);
    await holder.downgrade(writer, LONG_MS);
    await world.holding(a, READ);
    assert.equal((await world.ask(b, WRITE)).status, 'busy');
  });

  it('is counted once when it is sent again, and has its lease as long as asked for, never shorter', async ({
    world,
    holder,
  }) => {
    const writer = await world.holding(world.holder, WRITE);
    assert.equal(await holder.downgrade(writer, SHORT_MS), true);
    assertAbove((await holder.inspect('stock')).ttlMs, LONG_MS / 2);
    const { holders } = untimed(await holder.inspect('stock'));
    assert.equal(await holder.downgrade(writer, 2 * LONG_MS), true);
    const state = untimed(await holder.inspect('stock'));
    assertAbove(state.ttlMs, LONG_MS);
    assertEquals(state.holders, [{ ...holders[0], ttlMs: ANY_NUMBER }]);
    assert.equal(await holder.downgrade(writer, SHORT_MS), true);
    assertAbove((await holder.inspect('stock')).ttlMs, LONG_MS);
  });

  it('makes a reader like any other: it renews and releases, and has no depth', async ({ subject, world, holder }) => {
    const writer = await world.holding(world.holder, WRITE);
    await holder.downgrade(writer, 2 * LONG_MS);
    assertAbove((await holder.inspect('stock')).ttlMs, LONG_MS);
    assert.equal(await holder.setDepth(writer, 2, LONG_MS), false);
    assert.equal(await holder.renew(writer, 3 * LONG_MS), true);
    assert.equal(await holder.verify(writer), true);
    assert.equal(await holder.release(writer), true);
    assert.equal(await holder.downgrade(writer, LONG_MS), false);
    assert.equal(await subject.isEmpty(), true);
  });

  it('returns false for a writer whose lease has ended', async ({ subject, world, holder }) => {
    const writer = await world.holding(world.holder, WRITE);
    await world.leaseEnds(writer);
    assert.equal(await holder.downgrade(writer, LONG_MS), false);
    assert.equal(await subject.isEmpty(), true);
  });

  for (const wish of possible(features, EXCLUSIVE, REENTRANT, permits(1, 2))) {
    it(`returns false in ${wish.mode} mode`, async ({ world, holder }) => {
      const owner = await world.holding(world.holder, wish);
      assert.equal(await holder.downgrade(owner, LONG_MS), false);
      assert.equal((await holder.inspect('stock')).mode, wish.mode);
    });
  }

  for (const wish of [READ, WRITE]) {
    it(`returns false for a stranger and for a waiter (${wish.mode})`, async ({ world, holder, a }) => {
      await world.holding(world.holder, wish);
      const others: LockOwner[] = [newOwner(a.store, 'stock', 'write'), await world.queued(a, WRITE)];
      for (const other of others) assert.equal(await a.store.downgrade(other, LONG_MS), false);
      assertMatches(await holder.inspect('stock'), { mode: wish.mode, holders: [{ instanceId: 'holder' }] });
    });
  }
}
