import assert from 'node:assert/strict';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals, assertMatches } from '../asserts.js';
import { eventually } from '../../support/expect/eventually.js';
import type { QueueSuite } from '../queue-world.js';
import {
  everyMode,
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  PATIENT,
  permits,
  READ,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** A minimum of this length that has just begun for the process. */
function atLeast(minHoldMs: number) {
  return { minHoldMs, leftMs: minHoldMs };
}

/** Contract of lock stores: a released resource can stay taken for a while. */
export function describeRetention(suite: QueueSuite, features: StoreFeatures): void {
  const { describe, it } = suite.with(({ holder, a }) => ({
    ttlMs: async (): Promise<number> => (await holder.inspect('stock')).ttlMs,
    asksAgain: (owner: LockOwner) => a.store.acquire(owner, LONG_MS, PATIENT),
  }));

  for (const wish of everyMode(features)) {
    describe(`in ${wish.mode} mode`, () => {
      /** Excludes any other holder. */
      const whole = wish.permits ? permits(3, 3) : WRITE;

      it('stays taken: no owner holds it, and the state shows by which instance', async ({ holder, a }) => {
        const owner = { ...newOwner(a.store, 'stock'), ...wish };
        const fencingToken = await take(a.store, owner);
        const before = untimed(await holder.inspect('stock'));
        assert.equal(await a.store.retain(owner, atLeast(LONG_MS / 2)), true);
        const state = untimed(await holder.inspect('stock'));
        const [kept] = state.holders;
        assertEquals(state, { ...before, ttlMs: ANY_NUMBER, holders: [{ ...kept, instanceId: 'a' }] });
        assertMatches(kept, { fencingToken, depth: 1 });
        assertAtMost(kept!.ttlMs, LONG_MS / 2);
        assertAbove(kept!.ttlMs, LONG_MS / 4);
        assert.equal(await a.store.verify(owner), false);
        assert.equal(await a.store.renew(owner, LONG_MS), false);
        assert.equal(await a.store.setDepth(owner, 2, LONG_MS), false);
        assert.equal(await a.store.release(owner), false);
        // A node of a quorum may not have known it yet when the state was looked at first.
        assertMatches(untimed(await holder.inspect('stock')).holders, [{ ...kept, ttlMs: ANY_NUMBER }]);
      });

      it('lasts longer than the lease did, if the minimum does', async ({ world, a, ttlMs }) => {
        const owner = await world.holding(a, wish, LONG_MS / 4);
        await a.store.retain(owner, atLeast(LONG_MS));
        assertAbove(await ttlMs(), LONG_MS / 2);
      });

      it('becomes free when the minimum has passed: for the first in the queue, and for no newcomer before', async ({
        subject,
        world,
        holder,
        a,
        ttlMs,
        asksAgain,
      }) => {
        const owner = await world.holding(a, wish);
        const next = await world.queued(a, whole);
        await a.store.retain(owner, atLeast(SHORT_MS));
        assertAtMost(await ttlMs(), SHORT_MS);
        await subject.pass(2 * SHORT_MS);
        assertEquals(untimed(await holder.inspect('stock')).holders, []);
        assert.equal((await asksAgain(next)).status, 'granted');
        await a.store.release(next);
        assert.equal(await subject.isEmpty(), true);
      });

      it('is released at once if the minimum has passed', async ({ subject, world, a, b }) => {
        const owner = await world.holding(a, wish);
        const next = await world.queued(b, whole);
        assert.equal(await a.store.retain(owner, { minHoldMs: SHORT_MS, leftMs: 0 }), true);
        await world.granted(b, next);
        await b.store.release(next);
        assert.equal(await subject.isEmpty(), true);
      });

      it('lasts for as long as the process says, if it is not counted from the grant', async ({ world, a, ttlMs }) => {
        const owner = await world.holding(a, wish);
        await a.store.retain(owner, { leftMs: LONG_MS / 2 });
        assertAtMost(await ttlMs(), LONG_MS / 2);
        assertAbove(await ttlMs(), LONG_MS / 4);
      });

      it('stays as it is when the command is sent again', async ({ world, holder, a }) => {
        const owner = await world.holding(a, wish);
        await a.store.retain(owner, atLeast(LONG_MS / 2));
        const { holders } = untimed(await holder.inspect('stock'));
        assert.equal(await a.store.retain(owner, atLeast(LONG_MS)), true);
        assert.equal(await a.store.retain(owner, { leftMs: LONG_MS }), true);
        const [kept] = untimed(await holder.inspect('stock')).holders;
        assertEquals(kept, { ...holders[0], ttlMs: ANY_NUMBER });
        assertAtMost(kept!.ttlMs, LONG_MS / 2);
      });

      it('cannot be one that the owner does not hold; a waiter leaves the queue', async ({ world, holder, a, b }) => {
        await world.holding(a, wish);
        const waiter = await world.queued(b, whole);
        const { holders } = untimed(await holder.inspect('stock'));
        assert.equal(await b.store.retain(waiter, atLeast(LONG_MS)), false);
        assert.equal(await b.store.retain(newOwner(b.store, 'stock'), atLeast(LONG_MS)), false);
        assertEquals(await world.queue(), []);
        assertEquals(untimed(await holder.inspect('stock')).holders, [{ ...holders[0], ttlMs: ANY_NUMBER }]);
      });

      it('is ended by an operator', async ({ subject, world, holder, a }) => {
        const owner = await world.holding(a, wish);
        await a.store.retain(owner, atLeast(LONG_MS));
        const { holders } = untimed(await holder.inspect('stock'));
        assert.equal(await holder.forceRelease('stock', holders[0]!.fencingToken), true);
        assert.equal(await subject.isEmpty(), true);
      });

      it.onEveryServer(
        'is told to the first waiters, with when it is free, each a second later than the one before it',
        async ({ world, a, b }) => {
          const owner = await world.holding(a, wish);
          const first = await world.queued(b, whole, { sentAt: 70.9 });
          const second = await world.queued(a, whole, { sentAt: 80 });
          await a.store.retain(owner, atLeast(LONG_MS / 2));
          const [toFirst, toSecond] = [b.grants.notices, a.grants.notices];
          // One of several servers may have another order. It sends its messages again once the others have answered.
          await eventually(() => {
            assertAtMost(toFirst.at(-1)?.leftMs, LONG_MS / 2);
            assertAbove(toSecond.at(-1)?.leftMs, toFirst.at(-1)!.leftMs);
          });
          const [notice, behind] = [toFirst.at(-1)!, toSecond.at(-1)!];
          assertEquals(notice, { resource: 'stock', owner: first.id, sentAt: 70, leftMs: ANY_NUMBER });
          assertAbove(notice.leftMs, LONG_MS / 4);
          assertEquals(behind, { resource: 'stock', owner: second.id, sentAt: 80, leftMs: ANY_NUMBER });
          assertAtMost(behind.leftMs, LONG_MS / 2 + 1_000);
          await world.noOtherIsGranted();
        },
      );

      it('is reported to the next ones when a waiter gives up', async ({ world, a, b }) => {
        const owner = await world.holding(a, wish);
        const leaving: LockOwner[] = [];
        for (let count = 0; count < 4; count++) leaving.push(await world.queued(b, whole));
        const next = await world.queued(a, whole);
        await a.store.retain(owner, atLeast(LONG_MS / 2));
        for (const waiter of leaving) await b.store.release(waiter);
        await eventually(() => {
          const notice = a.grants.notices.at(-1);
          assertMatches(notice, { resource: 'stock', owner: next.id, leftMs: ANY_NUMBER });
          assertAtMost(notice!.leftMs, LONG_MS / 2);
          assertAbove(notice!.leftMs, LONG_MS / 4);
        });
        await world.noOtherIsGranted();
      });
    });
  }

  // A quorum believes what the process says is left: each of its nodes has counted from another moment.
  if (features.servers === 1) {
    it.onEveryServer('is counted from the grant', async ({ subject, world, a, ttlMs }) => {
      const owner = await world.holding(a, EXCLUSIVE);
      await subject.pass(SHORT_MS);
      await a.store.retain(owner, { minHoldMs: LONG_MS, leftMs: LONG_MS });
      assertAtMost(await ttlMs(), LONG_MS - SHORT_MS);
      assertAbove(await ttlMs(), LONG_MS / 2);
    });
  }

  it('keeps the share of one reader: others may join, and a writer waits', async ({ world, a, b }) => {
    const owner = await world.holding(a, READ);
    const other = await world.holding(b, READ);
    await a.store.retain(owner, atLeast(LONG_MS));
    assert.equal((await world.ask(b, READ)).status, 'granted');
    await b.store.release(other);
    assert.equal((await world.ask(b, WRITE)).status, 'busy');
    assertEquals(await world.holders(), ['a', 'b']);
  });

  it('keeps a writer that became a reader as a reader', async ({ world, a, b }) => {
    const owner = await world.holding(a, WRITE);
    await a.store.downgrade(owner, LONG_MS);
    await a.store.retain({ ...owner, mode: 'read' }, atLeast(LONG_MS));
    assert.equal((await world.ask(b, READ)).status, 'granted');
    assert.equal((await world.ask(b, WRITE)).status, 'busy');
  });

  it('lets no late command of the old owner take it again', async ({ world, a, asksAgain }) => {
    const owner = await world.holding(a, EXCLUSIVE);
    await a.store.retain(owner, atLeast(LONG_MS));
    assert.equal((await a.store.acquire(owner, LONG_MS)).status, 'busy');
    assert.equal((await asksAgain(owner)).status, 'queued');
    // Its sender takes it back, by either command.
    assert.equal(await a.store.retain(owner, atLeast(LONG_MS)), true);
    assertEquals(await world.queue(), []);
    assertEquals(await world.holders(), ['a']);
  });

  if (!features.semaphores) return;

  it('keeps the permits of one holder, and no others', async ({ subject, world, holder, a, b }) => {
    const owner = await world.holding(a, permits(2, 4));
    await world.holding(b, permits(1, 4));
    await a.store.retain(owner, atLeast(5 * SHORT_MS));
    assertEquals((await holder.inspect('stock')).permits, { total: 4, available: 1 });
    assert.equal((await world.ask(b, permits(2, 4))).status, 'busy');
    await subject.pass(6 * SHORT_MS);
    assertEquals((await holder.inspect('stock')).permits, { total: 4, available: 3 });
    assert.equal((await world.ask(b, permits(3, 4))).status, 'granted');
  });

  it('keeps one share of an owner that a late command has granted another', async ({ world, holder, a }) => {
    const owner = await world.holding(a, permits(1, 3));
    await a.store.retain(owner, atLeast(LONG_MS));
    assert.equal((await a.store.acquire(owner, LONG_MS)).status, 'granted');
    assert.equal((await holder.inspect('stock')).permits!.available, 1);
    assert.equal(await a.store.retain(owner, atLeast(LONG_MS)), true);
    assert.equal((await holder.inspect('stock')).permits!.available, 2);
  });
}
