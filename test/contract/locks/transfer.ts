import assert from 'node:assert/strict';
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
  REENTRANT,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** What every lock store keeps to: a lease that passes from one owner to the next. */
export function describeTransfer({ describe, it }: QueueSuite, features: StoreFeatures): void {
  for (const wish of everyMode(features)) {
    describe(`in ${wish.mode} mode`, () => {
      /** What no other holder can share. */
      const whole = wish.permits ? permits(3, 3) : WRITE;

      it('makes the other one the owner in place of the first, with the same token', async ({
        subject,
        holder,
        a,
        b,
      }) => {
        const first = { ...newOwner(a.store, 'stock'), ...wish };
        const second = { ...newOwner(b.store, 'stock'), ...wish };
        const token = await take(a.store, first);
        assert.equal(await a.store.transfer(first, { to: second.id, leaseMs: 2 * LONG_MS }), token);
        const { mode, holders } = untimed(await holder.inspect('stock'));
        assert.equal(mode, wish.mode);
        const of = { instanceId: 'b', fencingToken: token, ttlMs: ANY_NUMBER, depth: 1 };
        assertEquals(holders, [wish.permits ? { ...of, permits: wish.permits.count } : of]);
        assertAbove(holders[0]!.ttlMs, LONG_MS);
        assert.equal(await a.store.verify(first), false);
        assert.equal(await a.store.renew(first, LONG_MS), false);
        assert.equal(await a.store.release(first), false);
        assert.equal(await take(b.store, second), token);
        assert.equal(await b.store.renew(second, LONG_MS), true);
        assert.equal(await b.store.release(second), true);
        assert.equal(await subject.isEmpty(), true);
      });

      it('lasts exactly as long as asked for, also where that is shorter', async ({ world, holder, a, b }) => {
        const first = await world.holding(a, wish);
        const { id: to } = newOwner(b.store, 'stock');
        await a.store.transfer(first, { to, leaseMs: LONG_MS / 2 });
        assertAtMost((await holder.inspect('stock')).ttlMs, LONG_MS / 2);
      });

      it('tells the first waiter of an end that is sooner, as a renewal does that may shorten', async ({
        world,
        a,
        b,
      }) => {
        const first = await world.holding(a, wish);
        const waiter = await world.queued(b, whole, { sentAt: 70.9 });
        // A quorum may tell it for more than one of its nodes.
        const told = (leaseMs: number): Promise<void> =>
          eventually(() => {
            const notice = b.grants.notices.at(-1);
            assertMatches(notice, { resource: 'stock', owner: waiter.id, sentAt: 70, leftMs: ANY_NUMBER });
            assertAtMost(notice!.leftMs, leaseMs);
            assertAbove(notice!.leftMs, leaseMs / 2);
          });
        await a.store.renew(first, LONG_MS / 2, true);
        await told(LONG_MS / 2);
        const { id: to } = newOwner(b.store, 'stock');
        await a.store.transfer(first, { to, leaseMs: LONG_MS / 4 });
        await told(LONG_MS / 4);
        await a.store.renew({ ...first, id: to }, LONG_MS);
        await a.store.transfer({ ...first, id: to }, { to: newOwner(b.store, 'stock').id, leaseMs: 2 * LONG_MS });
        await world.noOtherIsGranted();
        for (const { leftMs } of b.grants.notices) assertAtMost(leftMs, LONG_MS / 2);
      });

      it('changes nothing when it is sent again, but makes a lease longer', async ({ world, holder, a, b }) => {
        const first = await world.holding(a, wish);
        const { id: to } = newOwner(b.store, 'stock');
        const token = await a.store.transfer(first, { to, leaseMs: 2 * LONG_MS });
        const { holders } = untimed(await holder.inspect('stock'));
        for (const leaseMs of [3 * LONG_MS, SHORT_MS]) {
          assert.equal(await a.store.transfer(first, { to, leaseMs }), token);
          const now = untimed(await holder.inspect('stock')).holders;
          assertEquals(now, [{ ...holders[0], ttlMs: ANY_NUMBER }]);
          assertAbove(now[0]!.ttlMs, 2 * LONG_MS);
        }
      });

      it('takes the token of the command: a later one of the same lease', async ({ holder, a, b }) => {
        const first = { ...newOwner(a.store, 'stock'), ...wish };
        const second = { ...newOwner(b.store, 'stock'), ...wish };
        const fencingToken = (await take(a.store, first)) + 7;
        assert.equal(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, fencingToken }), fencingToken);
        assertMatches(untimed(await holder.inspect('stock')).holders[0], { instanceId: 'b', fencingToken });
        assert.equal(await take(b.store, second), fencingToken);
      });

      it('returns null if the first one is not the owner: a stranger, a waiter, or a dead holder', async ({
        world,
        holder,
        a,
        b,
      }) => {
        const { id: to } = newOwner(b.store, 'stock');
        const owner = await world.holding(world.holder, wish);
        const stranger = { ...newOwner(a.store, 'stock'), ...wish };
        assert.equal(await a.store.transfer(stranger, { to, leaseMs: LONG_MS }), null);
        assert.equal(await holder.verify(owner), true);
        await world.leaseEnds(owner);
        assert.equal(await holder.transfer(owner, { to, leaseMs: LONG_MS }), null);
        assertEquals(await world.holders(), []);
      });

      it('leaves the waiters where they are', async ({ world, holder, a, b }) => {
        const owner = await world.holding(world.holder, wish.permits ? permits(3, 3) : wish);
        const waiter = await world.queued(a, wish.permits ? wish : WRITE);
        const second = newOwner(b.store, 'stock');
        assert.notEqual(await holder.transfer(owner, { to: second.id, leaseMs: LONG_MS }), null);
        await world.noOtherIsGranted();
        assertEquals(await world.queue(), ['a']);
        assert.equal(await a.store.transfer(waiter, { to: newOwner(b.store, 'stock').id, leaseMs: LONG_MS }), null);
        await b.store.release(second);
        await world.granted(a, waiter);
      });
    });
  }

  for (const wish of [REENTRANT, WRITE]) {
    it(`begins with depth 1 in ${wish.mode} mode, however often the first owner has entered`, async ({
      world,
      holder,
      a,
      b,
    }) => {
      const first = await world.holding(a, wish);
      await a.store.setDepth(first, 4, LONG_MS);
      const second = newOwner(b.store, 'stock');
      await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS });
      assert.equal(untimed(await holder.inspect('stock')).holders[0]?.depth, 1);
      assert.equal(await a.store.setDepth(first, 2, LONG_MS), false);
      assert.equal(await b.store.setDepth(second, 2, LONG_MS), true);
    });
  }

  it.onEveryServer('passes one reader on and leaves the others as they are', async ({ world, holder, a, b }) => {
    const reader = await world.holding(a, READ, LONG_MS);
    const other = await world.holding(world.holder, READ, LONG_MS);
    const { id: to } = newOwner(b.store, 'stock');
    await a.store.transfer(reader, { to, leaseMs: 2 * LONG_MS });
    const { holders } = untimed(await holder.inspect('stock'));
    assertEquals(
      holders.map(({ instanceId }) => instanceId),
      ['b', 'holder'],
    );
    assertAtMost(holders[1]!.ttlMs, LONG_MS);
    assert.equal(await holder.verify(other), true);
  });

  if (features.semaphores) {
    it('passes permits on, as many as there were', async ({ world, holder, a, b }) => {
      const first = await world.holding(a, permits(2, 3));
      await world.holding(world.holder, permits(1, 3));
      const second = newOwner(b.store, 'stock');
      await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, share: true });
      const state = untimed(await holder.inspect('stock'));
      assertEquals(state.permits, { total: 3, available: 0 });
      assertMatches(state.holders, [{ instanceId: 'b', permits: 2 }, { permits: 1 }]);
      await b.store.release(second);
      assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 2 });
    });
  }

  describe('that is shared', () => {
    it.onEveryServer(
      'leaves a reader in place beside the next one; the resource is free when both have released',
      async ({ world, holder, a, b }) => {
        const first = newOwner(a.store, 'stock', 'read');
        const second = newOwner(b.store, 'stock', 'read');
        const token = await take(a.store, first);
        const terms = { to: second.id, leaseMs: 2 * LONG_MS, fencingToken: token + 1, share: true };
        for (const _sent of ['once', 'again']) assert.equal(await a.store.transfer(first, terms), token + 1);
        assertMatches(untimed(await holder.inspect('stock')).holders, [
          { instanceId: 'a', fencingToken: token },
          { instanceId: 'b', fencingToken: token + 1 },
        ]);
        const writer = await world.queued(world.holder, WRITE);
        assert.equal(await a.store.release(first), true);
        await world.noOtherIsGranted();
        assert.equal(await b.store.release(second), true);
        await world.granted(world.holder, writer);
      },
    );

    for (const wish of [EXCLUSIVE, REENTRANT, WRITE]) {
      it(`is for readers only: refused in ${wish.mode} mode`, async ({ world, a, b }) => {
        const first = await world.holding(a, wish);
        const second = newOwner(b.store, 'stock');
        assert.equal(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, share: true }), null);
        assertEquals(await world.holders(), ['a']);
        assert.equal(await b.store.verify(second), false);
      });
    }
  });

  it('returns the token of a holder that has the resource already, and leaves the first one its lease', async ({
    world,
    a,
    b,
  }) => {
    const first = await world.holding(a, READ);
    const second = newOwner(b.store, 'stock', 'read');
    const token = await take(b.store, second);
    assert.equal(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS }), token);
    assertEquals(await world.holders(), ['a', 'b']);
  });

  it.onEveryServer(
    'is followed by a rotation as the lease of any owner is: the waiters come first',
    async ({ world, a, b }) => {
      const first = await world.holding(a, EXCLUSIVE);
      const second = newOwner(b.store, 'stock');
      await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS });
      const next = newOwner(b.store, 'stock');
      const waiter = await world.queued(a, EXCLUSIVE);
      const reply = await b.store.rotate(second, next, LONG_MS, PATIENT);
      assertMatches(reply, { released: true, next: { status: 'queued' } });
      await world.granted(a, waiter);
    },
  );
}
