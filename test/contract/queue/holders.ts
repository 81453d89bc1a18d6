import assert from 'node:assert/strict';
import type { Holder, Holders } from '../../../lib/kernel/api/holder.js';
import type { AcquireReply } from '../../../lib/kernel/store/lock-store.js';
import {
  ANY_NUMBER,
  assertAbove,
  assertAtLeast,
  assertAtMost,
  assertBelow,
  assertEquals,
  assertExcludes,
  assertLacks,
  assertMatches,
} from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { EXCLUSIVE, LONG_MS, newOwner, PATIENT, permits, READ, REENTRANT, SHORT_MS, take, WRITE } from '../requests.js';
import type { StoreFeatures } from '../subject.js';

function seenIn(reply: AcquireReply): Holders | undefined {
  return 'seen' in reply ? reply.seen : undefined;
}

/** Contract of lock stores: a caller that is not granted learns about the holders in the same reply. */
export function describeSeenHolders(suite: QueueSuite, features: StoreFeatures): void {
  const { it } = suite.with(({ holder }) => ({
    tokenOf: async (instanceId: string): Promise<number> => {
      const { holders } = await holder.inspect('stock');
      return holders.find((one) => one.instanceId === instanceId)!.fencingToken;
    },
  }));

  for (const wish of [EXCLUSIVE, REENTRANT, WRITE, READ]) {
    it(`names a single holder in mode ${wish.mode}`, async ({ subject, world, a, tokenOf }) => {
      await world.holding(world.holder, wish);
      const fencingToken = await tokenOf('holder');
      await subject.pass(SHORT_MS);
      for (const queueing of [undefined, PATIENT, { ...PATIENT, maxWaiters: 0 }]) {
        const { holders, holderCount } = seenIn(await world.ask(a, EXCLUSIVE, queueing))!;
        assert.equal(holderCount, 1);
        const [{ heldMs, ttlMs, ...seen }] = holders as [Holder];
        const lease = { fencingToken, leaseMs: LONG_MS, depth: 1 };
        assertEquals(seen, { instanceId: 'holder', isThisProcess: false, mode: wish.mode, ...lease });
        assertAtLeast(heldMs, SHORT_MS);
        assertBelow(heldMs, LONG_MS);
        assertAbove(ttlMs, LONG_MS / 2);
        assertAtMost(ttlMs, LONG_MS - SHORT_MS);
      }
    });
  }

  it('says if the holder is another call of the same client', async ({ world, a, b }) => {
    await world.holding(a, EXCLUSIVE);
    assertMatches(seenIn(await world.ask(a, EXCLUSIVE)), { holders: [{ instanceId: 'a', isThisProcess: true }] });
    assertMatches(seenIn(await world.ask(b, EXCLUSIVE)), { holders: [{ instanceId: 'a', isThisProcess: false }] });
  });

  it('counts from the first grant, however often the lease is renewed', async ({ subject, world, holder, a }) => {
    const owner = await world.holding(world.holder, EXCLUSIVE);
    await subject.pass(SHORT_MS);
    await holder.renew(owner, LONG_MS);
    const [seen] = seenIn(await world.ask(a, EXCLUSIVE))!.holders;
    assertAtLeast(seen!.heldMs, SHORT_MS - 1);
  });

  it('names the next holder once the lock was passed on', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const next = await world.waiting(a);
    await holder.release(owner);
    await world.granted(a, next);
    assertMatches(seenIn(await world.ask(b, EXCLUSIVE)), { holderCount: 1, holders: [{ instanceId: 'a' }] });
  });

  it('names the next holder in the answer to the rotation', async ({ world, holder, a }) => {
    const owner = await world.held();
    await world.waiting(a);
    const reply = await holder.rotate(owner, newOwner(holder, 'stock'), LONG_MS, PATIENT);
    assertMatches(reply, { released: true, next: { status: 'queued' } });
    assertMatches(seenIn(reply.next as AcquireReply), { holderCount: 1, holders: [{ instanceId: 'a' }] });
  });

  it('names the readers whose lease runs, in the order of their tokens', async ({ world, a, b, tokenOf }) => {
    await world.holding(b, READ);
    await world.holding(world.holder, READ, SHORT_MS);
    await world.holding(a, READ);
    await world.expire();
    const seen = seenIn(await world.ask(a, WRITE, PATIENT))!;
    assert.equal(seen.holderCount, 2);
    assertMatches(seen.holders, [
      { instanceId: 'b', isThisProcess: false, mode: 'read' },
      { instanceId: 'a', isThisProcess: true, mode: 'read' },
    ]);
    assertEquals(
      seen.holders.map(({ fencingToken }) => fencingToken),
      [await tokenOf('b'), await tokenOf('a')],
    );
    assertLacks(seen.holders[0], 'permits');
  });

  it('names 8 of very many readers, and says how many there are', async ({ world, a, b }) => {
    for (let i = 0; i < 20; i++) await world.holding(i % 2 ? a : b, READ);
    const seen = seenIn(await world.ask(world.holder, WRITE))!;
    assert.equal(seen.holderCount, 20);
    assert.equal(seen.holders.length, 8);
    assert.equal(new Set(seen.holders.map(({ fencingToken }) => fencingToken)).size, 8);
  });

  if (features.semaphores) {
    it('names the holders of permits, with how many permits each of them has', async ({ world, a, b }) => {
      await world.holding(a, permits(2, 3));
      await world.holding(b, permits(1, 3));
      const seen = seenIn(await world.ask(world.holder, permits(1, 3)))!;
      assertMatches(seen, {
        holderCount: 2,
        holders: [
          { instanceId: 'a', mode: 'semaphore', permits: 2 },
          { instanceId: 'b', mode: 'semaphore', permits: 1 },
        ],
      });
    });

    for (const holders of [8, 9, 10, 30]) {
      it(`counts ${holders} holders, not their permits`, async ({ world, a, b }) => {
        for (let i = 0; i < holders; i++) await world.holding(i % 2 ? a : b, permits(2, 2 * holders));
        const seen = seenIn(await world.ask(world.holder, permits(1, 2 * holders)))!;
        assert.equal(seen.holderCount, holders);
        assert.equal(seen.holders.length, 8);
      });
    }
  }

  it('says nothing secret', async ({ world, a, b }) => {
    const owners = [await world.holding(world.holder, READ), await world.holding(a, READ)];
    const replies = [await world.ask(b, EXCLUSIVE), await world.ask(b, EXCLUSIVE, PATIENT)];
    for (const { id } of owners) {
      assertExcludes(JSON.stringify(replies), id.slice(id.lastIndexOf('/') + 1));
    }
  });

  it('says nothing of a holder to a caller that is granted', async ({ holder }) => {
    const owner = newOwner(holder, 'stock');
    await take(holder, owner);
    assertEquals(await holder.acquire(owner, LONG_MS), { status: 'granted', fencingToken: ANY_NUMBER });
  });
}
