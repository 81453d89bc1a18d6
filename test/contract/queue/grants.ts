import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import {
  assertGrowing,
  assertSameToken,
  enqueue,
  everyMode,
  LONG_MS,
  newOwner,
  PATIENT,
  permits,
  SHORT_MS,
  take,
  untimed,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** Contract of lock stores: the waiter that gets a released resource. */
export function describeGrants({ it }: QueueSuite, features: StoreFeatures): void {
  it.onEveryServer('go to the first in the queue, and to no other waiter', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    assert.equal(await holder.release(owner), true);
    assert.equal((await a.grants.next()).owner, first.id);
    assert.equal(await a.store.verify(first), true);
    assertEquals(await world.queue(), ['b']);
    assert.equal(await world.grantBeforeNow(a), undefined);
    assert.equal(await world.grantBeforeNow(b), undefined);
  });

  it.onEveryServer(
    'go round in the order in which the waiters came, of any instance',
    async ({ world, holder, a, b }) => {
      let owner = await world.held();
      let store = holder;
      const line = [a, b, b, a, b].map((peer) => ({ peer, waiter: newOwner(peer.store, 'stock') }));
      for (const { peer, waiter } of line) await enqueue(peer.store, waiter);
      for (const { peer, waiter } of line) {
        await store.release(owner);
        assert.equal((await peer.grants.next()).owner, waiter.id);
        [store, owner] = [peer.store, waiter];
      }
      assertEquals(await world.queue(), []);
    },
  );

  it('have one listener: a second one is refused', ({ holder }) => {
    const listener = { granted: () => {}, reconnected: () => {} };
    assert.throws(() => holder.listen(listener));
  });

  it('keep to the order also if a waiter asked again', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await enqueue(a.store, first);
    await holder.release(owner);
    assert.equal((await a.grants.next()).owner, first.id);
  });

  it('pass over a waiter that did not ask again in time, at any place', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    const first = await world.waiting(a);
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    const second = await world.waiting(a);
    await world.expire();
    await holder.release(owner);
    assert.equal((await a.grants.next()).owner, first.id);
    await a.store.release(first);
    assert.equal((await a.grants.next()).owner, second.id);
    assert.equal(await world.grantBeforeNow(b), undefined);
  });

  it.onEveryServer('pass over an instance that is gone', async ({ subject, world, holder, a, b }) => {
    const owner = await world.held();
    await world.waiting(a);
    await world.waiting(a);
    const alive = await world.waiting(b);
    await subject.kill('a');
    await holder.release(owner);
    assert.equal((await b.grants.next()).owner, alive.id);
    assertEquals(await world.queue(), []);
  });

  it.onEveryServer(
    'go to no waiter if all are gone: the resource is free',
    async ({ subject, world, holder, a, b }) => {
      const owner = await world.held();
      await world.waiting(a);
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await subject.kill('a');
      await world.expire();
      assert.equal(await holder.release(owner), true);
      assert.equal(await subject.isEmpty(), true);
    },
  );

  it('pass over a waiter that withdrew', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const withdrawn = await world.waiting(a);
    const next = await world.waiting(b);
    await a.store.release(withdrawn);
    await holder.release(owner);
    assert.equal((await b.grants.next()).owner, next.id);
    assert.equal(await world.grantBeforeNow(a), undefined);
  });

  it.onEveryServer(
    'go to the next waiter if the first withdraws without knowing that it was granted',
    async ({ world, holder, a, b }) => {
      const owner = await world.held();
      const withdrawing = await world.waiting(a);
      const next = await world.waiting(b);
      await holder.release(owner);
      assert.equal(await a.store.release(withdrawing), true);
      assert.equal((await b.grants.next()).owner, next.id);
    },
  );

  it.onEveryServer('are found by asking again if the message was lost', async ({ world, holder, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a);
    await world.expire();
    await holder.release(owner);
    const { fencingToken } = await a.grants.next();
    for (const ask of [() => a.store.acquire(waiter, LONG_MS, PATIENT), () => a.store.acquire(waiter, 2 * LONG_MS)]) {
      const reply = await ask();
      assertEquals(reply, { status: 'granted', fencingToken: ANY_NUMBER });
      assertSameToken((reply as { fencingToken: number }).fencingToken, fencingToken, features);
    }
    assertAbove((await holder.inspect('stock')).ttlMs, LONG_MS);
  });

  it.onEveryServer('are made once if the release is sent again', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    assert.equal(await holder.release(owner), true);
    const { fencingToken } = await a.grants.next();
    assert.equal(await holder.release(owner), false);
    assertSameToken(await take(a.store, first), fencingToken, features);
    assertEquals(await world.queue(), ['b']);
    assert.equal(await world.grantBeforeNow(b), undefined);
  });
}

/** Contract of lock stores: the lease that a waiter is granted from the queue, and its message. */
export function describeGrantMessages(inWorld: QueueSuite, features: StoreFeatures): void {
  const { describe, it } = inWorld;

  for (const resource of ['stock', '{a}:b %41\n\0 "é" 🔒 __proto__', '%7B 100 %', 'a b  c', '}', ' ']) {
    it.onEveryServer(
      `name the resource ${JSON.stringify(resource)} as it is, the waiter, its token and the time it asked`,
      async ({ world, holder, a }) => {
        const owner = await world.held(resource);
        const waiter = await world.waiting(a, resource, { sentAt: 1_234 });
        await holder.release(owner);
        const grant = await a.grants.next();
        assertEquals(grant, { resource, owner: waiter.id, fencingToken: ANY_NUMBER, sentAt: 1_234 });
        const { holders } = untimed(await holder.inspect(resource));
        assertEquals(holders, [{ instanceId: 'a', fencingToken: grant.fencingToken, ttlMs: ANY_NUMBER, depth: 1 }]);
      },
    );
  }

  it('say when the waiter asked last, rounded down', async ({ world, holder, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a, 'stock', { sentAt: 1_000 });
    await enqueue(a.store, waiter, { sentAt: 86_400_002.9 });
    await a.store.acquire(waiter, LONG_MS);
    await holder.release(owner);
    assert.equal((await a.grants.next()).sentAt, 86_400_002);
  });

  for (const wish of everyMode(features)) {
    it(`name the token and the time it asked, and last for what is left of the time since, in ${wish.mode} mode`, async ({
      world,
      holder,
      a,
    }) => {
      const owner = await world.holding(world.holder, wish.permits ? permits(3, 3) : WRITE);
      const waiter = await world.queued(a, wish, { sentAt: 4_321.9, leaseMs: 2 * LONG_MS });
      await world.expire();
      await holder.release(owner);
      const { fencingToken, ...grant } = await a.grants.next();
      assertEquals(grant, { resource: 'stock', owner: waiter.id, sentAt: 4_321 });
      const { mode, holders } = untimed(await holder.inspect('stock'));
      assert.equal(mode, wish.mode);
      assertMatches(holders, [{ instanceId: 'a', fencingToken, depth: 1 }]);
      assert.equal(holders[0]!.permits, wish.permits?.count);
      assertAtMost(holders[0]!.ttlMs, 2 * LONG_MS - SHORT_MS);
      assertAbove(holders[0]!.ttlMs, LONG_MS);
      assertEquals(await a.store.acquire(waiter, LONG_MS), { status: 'granted', fencingToken });
    });
  }

  describe('last', () => {
    const { it } = inWorld.with(({ world, holder, a }) => ({
      /** The remaining time of the lease that the waiter gets now. */
      grantedTtlMs: async (waiter: () => Promise<unknown>): Promise<number> => {
        const owner = await world.held();
        await waiter();
        await holder.release(owner);
        await a.grants.next();
        return (await holder.inspect('stock')).ttlMs;
      },
    }));

    it.onEveryServer('for what is left of the time since the waiter asked', async ({ world, a, grantedTtlMs }) => {
      const ttlMs = await grantedTtlMs(async () => {
        await world.waiting(a);
        await world.expire();
      });
      assertAtMost(ttlMs, LONG_MS - SHORT_MS);
      assertAbove(ttlMs, LONG_MS / 2);
    });

    it('as long as the waiter asked for, not as long as the lease before', async ({ world, a, grantedTtlMs }) => {
      const ttlMs = await grantedTtlMs(() => world.waiting(a, 'stock', { leaseMs: 2 * LONG_MS }));
      assertAbove(ttlMs, LONG_MS);
    });

    it('as long as the waiter asked for at last', async ({ world, a, grantedTtlMs }) => {
      const ttlMs = await grantedTtlMs(async () => {
        const waiter = await world.waiting(a, 'stock', { leaseMs: 3 * LONG_MS });
        await enqueue(a.store, waiter, { leaseMs: LONG_MS });
      });
      assertAtMost(ttlMs, LONG_MS);
    });
  });

  it('keep the mode in which the waiter asked', async ({ world, holder, a, b }) => {
    const owner = await world.held('stock', 'reentrant');
    const exclusive = newOwner(a.store, 'stock', 'exclusive');
    const reentrant = newOwner(b.store, 'stock', 'reentrant');
    await enqueue(a.store, exclusive);
    await enqueue(b.store, reentrant);
    await holder.setDepth(owner, 3, LONG_MS);
    await holder.release(owner);
    await a.grants.next();
    assert.equal((await holder.inspect('stock')).mode, 'exclusive');
    assert.equal(await a.store.setDepth(exclusive, 2, LONG_MS), false);
    await a.store.release(exclusive);
    await b.grants.next();
    assertMatches(await holder.inspect('stock'), { mode: 'reentrant', holders: [{ depth: 1 }] });
    assert.equal(await b.store.setDepth(reentrant, 2, LONG_MS), true);
    assert.equal((await holder.inspect('stock')).holders[0]?.depth, 2);
  });

  it.onEveryServer(
    'have larger tokens than the leases of the resource before, by message or by reply',
    async ({ world, holder, a }) => {
      const tokens: number[] = [];
      for (let i = 0; i < 3; i++) {
        const owner = newOwner(holder, 'stock');
        tokens.push(await take(holder, owner));
        const waiter = await world.waiting(a);
        await holder.release(owner);
        tokens.push((await a.grants.next()).fencingToken);
        await a.store.release(waiter);
      }
      assertGrowing(tokens);
      assert.equal(
        tokens.every((token) => Number.isSafeInteger(token) && token % 64 === 0),
        true,
      );
    },
  );
}
