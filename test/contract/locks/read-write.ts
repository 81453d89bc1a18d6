import { ACQUIRE_MODES } from '../../../lib/kernel/api/lock-mode.js';
import assert from 'node:assert/strict';
import { eventually } from '../../support/expect/eventually.js';
import { ANY_NUMBER, assertAbove, assertAtMost, assertContains, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import {
  assertGrowing,
  assertSameToken,
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  PATIENT,
  READ,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Contract of lock stores: readers share, all others exclude each other. */
export function describeReadWrite({ describe, it }: QueueSuite, features: StoreFeatures): void {
  const { oneQueue } = features;

  describe('readers', () => {
    it.onEveryServer('share, each with its own token and expiry', async ({ holder, a, b }) => {
      const [first, second] = [newOwner(a.store, 'stock', 'read'), newOwner(b.store, 'stock', 'read')];
      const tokens = [await take(a.store, first, 3 * LONG_MS), await take(b.store, second, LONG_MS)];
      assertAbove(tokens[1], tokens[0]!);
      const { holders, ...state } = untimed(await holder.inspect('stock'));
      const ttlMs = ANY_NUMBER;
      assertEquals(state, { resource: 'stock', mode: 'read', ttlMs, waiters: [] });
      assertEquals(holders, [
        { instanceId: 'a', fencingToken: tokens[0], ttlMs, depth: 1 },
        { instanceId: 'b', fencingToken: tokens[1], ttlMs, depth: 1 },
      ]);
      assertAbove(holders[0]!.ttlMs, 2 * LONG_MS);
      assertAtMost(holders[1]!.ttlMs, LONG_MS);
      assert.equal(state.ttlMs, holders[0]!.ttlMs);
    });

    it('of one instance share as those of several', async ({ world, a }) => {
      await world.holding(a, READ);
      await world.holding(a, READ);
      assertEquals(await world.holders(), ['a', 'a']);
    });

    it('keep their token, and are counted once, when they ask again; only their own lease starts again', async ({
      world,
      holder,
      a,
      b,
    }) => {
      const first = newOwner(a.store, 'stock', 'read');
      const token = await take(a.store, first);
      await world.holding(b, READ);
      for (const leaseMs of [2 * LONG_MS, LONG_MS / 2]) {
        assertSameToken(await take(a.store, first, leaseMs), token, features);
      }
      const { holders } = untimed(await holder.inspect('stock'));
      assertEquals(
        holders.map(({ instanceId }) => instanceId),
        ['a', 'b'],
      );
      assertAbove(holders[0]!.ttlMs, LONG_MS);
      assertAtMost(holders[1]!.ttlMs, LONG_MS);
    });

    it('renew their own lease and no other one', async ({ world, holder, a, b }) => {
      const first = await world.holding(a, READ);
      await world.holding(b, READ);
      assert.equal(await a.store.renew(first, 2 * LONG_MS), true);
      assert.equal(await a.store.renew(first, LONG_MS), true); // late: it cuts nothing
      const renewed = (await holder.inspect('stock')).holders;
      assertAbove(renewed[0]!.ttlMs, LONG_MS);
      assertAtMost(renewed[1]!.ttlMs, LONG_MS);
      assert.equal(await a.store.renew(first, LONG_MS / 4, true), true);
      const [cut, other] = (await holder.inspect('stock')).holders;
      assertAtMost(cut!.ttlMs, LONG_MS / 4);
      assertAbove(other!.ttlMs, LONG_MS / 2);
    });

    it('release their own lease and no other one, however often it is sent', async ({ subject, world, a, b }) => {
      const first = await world.holding(a, READ);
      const second = await world.holding(b, READ);
      assert.equal(await a.store.release(newOwner(a.store, 'stock', 'read')), false);
      assert.equal(await a.store.release(first), true);
      assert.equal(await a.store.release(first), false);
      assertEquals(await world.holders(), ['b']);
      assert.equal(await a.store.verify(first), false);
      assert.equal(await a.store.renew(first, LONG_MS), false);
      assert.equal(await b.store.verify(second), true);
      assert.equal(await b.store.release(second), true);
      assert.equal(await subject.isEmpty(), true);
    });

    it('have no depth to set', async ({ world, holder, a }) => {
      const reader = await world.holding(a, READ);
      assert.equal(await a.store.setDepth(reader, 2, LONG_MS), false);
      assert.equal((await holder.inspect('stock')).holders[0]?.depth, 1);
    });

    it('tell others how long the last of them lasts', async ({ world, a, b }) => {
      await world.holding(a, READ, LONG_MS);
      await world.holding(b, READ, 3 * LONG_MS);
      await world.holding(a, READ, 2 * LONG_MS);
      const replies = [await world.ask(b, WRITE), await world.ask(b, EXCLUSIVE, PATIENT)];
      for (const reply of replies) assertAbove((reply as { ttlMs: number }).ttlMs, 2 * LONG_MS);
    });
  });

  for (const [held, wanted] of ACQUIRE_MODES.flatMap((held) =>
    ACQUIRE_MODES.map((wanted) => [held, wanted] as const),
  )) {
    it(`a resource held in ${held} mode is granted in ${wanted} mode if both share it`, async ({ world, a, b }) => {
      const owner = await world.holding(a, { mode: held });
      const isShared = held === 'read' && wanted === 'read';
      assert.equal((await world.ask(b, { mode: wanted })).status, isShared ? 'granted' : 'busy');
      await a.store.release(owner);
      assert.equal(
        (await world.ask(b, { mode: wanted })).status,
        isShared || held !== 'read' || wanted !== 'read' ? 'granted' : 'busy',
      );
    });
  }

  it.onEveryServer(
    'readers directly behind each other are granted together, and the writer behind them is not',
    async ({ subject, world, holder, a, b }) => {
      const writer = await world.holding(world.holder, WRITE);
      const readers = [await world.queued(a, READ), await world.queued(b, READ), await world.queued(a, READ)];
      const second = await world.queued(b, WRITE);
      const late = await world.queued(a, READ);
      await holder.release(writer);
      await (oneQueue
        ? world.granted(a, readers[0]!, readers[2]!)
        : world.grantedInAnyOrder(a, readers[0]!, readers[2]!));
      await world.granted(b, readers[1]!);
      await world.noOtherIsGranted();
      const holders = await world.holders();
      assertEquals(oneQueue ? holders : holders.sort(), oneQueue ? ['a', 'b', 'a'] : ['a', 'a', 'b']);
      const behind = [
        { instanceId: 'b', mode: 'write' },
        { instanceId: 'a', mode: 'read' },
      ];
      // On a quorum, the last node may still have the place of a reader that the others have granted.
      await eventually(async () => {
        const { waiters } = untimed(await holder.inspect('stock'));
        assert.equal(waiters.length, behind.length);
        if (oneQueue) assertEquals(waiters, behind);
        else assertContains(waiters, behind);
      });
      await a.store.release(readers[0]!);
      await a.store.release(readers[2]!);
      await world.noOtherIsGranted();
      await b.store.release(readers[1]!);
      await world.granted(b, second);
      await b.store.release(second);
      await world.granted(a, late);
      await a.store.release(late);
      assert.equal(await subject.isEmpty(), true);
    },
  );

  if (oneQueue) {
    it('readers that are granted together have different tokens, which grow in their order', async ({
      world,
      holder,
      a,
    }) => {
      const token = await take(holder, newOwner(holder, 'other'));
      const writer = await world.holding(world.holder, WRITE);
      await world.queued(a, READ);
      await world.queued(a, READ);
      await holder.release(writer);
      const tokens = [token, (await a.grants.next()).fencingToken, (await a.grants.next()).fencingToken];
      assertGrowing(tokens);
      assertEquals(
        (await holder.inspect('stock')).holders.map(({ fencingToken }) => fencingToken),
        tokens.slice(1),
      );
    });
  }

  it.onEveryServer('a release that is sent again grants nothing twice', async ({ world, holder, a, b }) => {
    const writer = await world.holding(world.holder, WRITE);
    const reader = await world.queued(a, READ);
    await world.queued(b, WRITE);
    assert.equal(await holder.release(writer), true);
    const { fencingToken } = await a.grants.next();
    assert.equal(await holder.release(writer), false);
    assertSameToken(await take(a.store, reader), fencingToken, features);
    await world.noOtherIsGranted();
  });

  // With several queues, a writer that has one vote passes it on if the next answer is late, and the reader may be first.
  (oneQueue ? it.onEveryServer : it)(
    'a reader that rotates stands behind the writer that waits',
    async ({ world, holder, a }) => {
      const reader = await world.holding(world.holder, READ);
      const writer = await world.queued(a, WRITE);
      const next = newOwner(holder, 'stock', 'read');
      const rotate = () => holder.rotate(reader, next, LONG_MS, PATIENT);
      assertMatches(await rotate(), { released: true, next: { status: 'queued' } });
      assertMatches(await rotate(), { released: false, next: { status: 'queued' } });
      await world.granted(a, writer);
      await a.store.release(writer);
      await world.granted(world.holder, next);
    },
  );

  it('a reader that rotates is granted at once if there is no waiter', async ({ world, holder, a }) => {
    const reader = await world.holding(world.holder, READ);
    await world.holding(a, READ);
    const next = newOwner(holder, 'stock', 'read');
    const reply = await holder.rotate(reader, next, LONG_MS, PATIENT);
    assertMatches(reply, { released: true, next: { status: 'granted' } });
    assertEquals(await world.holders(), ['a', 'holder']);
  });

  for (const wish of [READ, WRITE]) {
    it(`is not free for the claim of a tick, in ${wish.mode} mode`, async ({ world, a }) => {
      await world.holding(world.holder, wish);
      const owner = newOwner(a.store, 'stock');
      const claim = { owner, leaseMs: LONG_MS, claimTtlMs: LONG_MS, overlap: 'wait', takeOver: 'nothing' } as const;
      const reply = await a.jobs.claim({ resource: 'stock', tick: 'noon' }, claim);
      assertEquals(reply, { status: 'claimed', ttlMs: ANY_NUMBER });
      assertEquals(await world.holders(), ['holder']);
    });
  }

  it('nothing is left when all readers have died', async ({ subject, world, a, b }) => {
    await world.holding(a, READ, SHORT_MS);
    await world.holding(b, READ, SHORT_MS);
    await world.queued(b, WRITE, { leaseMs: SHORT_MS });
    await world.expire();
    assert.equal(await subject.isEmpty(), true);
  });
}
