import assert from 'node:assert/strict';
import { PER_STEP, type KeepReply, type LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals, assertMatches } from '../asserts.js';
import type { Peer, QueueSuite } from '../queue-world.js';
import {
  enqueue,
  everyMode,
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

const LABEL = '{"group":"Orders.pay"}';

/** Keeps one place. */
async function keep(
  { store }: Peer,
  waiter: LockOwner,
  { leaseMs = LONG_MS, sentAt = 0, lastPlace = 1 } = {},
): Promise<KeepReply> {
  const replies = await store.keepPlaces!([{ waiter, leaseMs, lastPlace }], sentAt);
  assert.equal(replies.length, 1);
  return replies[0]!;
}

/** The places are kept, or their owners have to ask. */
async function assertKept(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
  for (const waiter of waiters) assertMatches(await keep(peer, waiter), { status: 'kept', ttlMs: ANY_NUMBER });
}

async function assertAsk(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
  for (const waiter of waiters) assertEquals(await keep(peer, waiter), { status: 'ask' });
}

/**
 * Contract of lock stores that keep places in queues without a request for the resource: nothing else changes. Other
 * stores pass these tests without a command.
 */
export function describeKeeping(suite: QueueSuite, features: StoreFeatures): void {
  const { it } = suite.where(({ a }) => a.store.keepPlaces !== undefined);

  it('last for their leases from then on, and stay in their order', async ({ world, holder, a, b }) => {
    await world.held();
    const brief = { leaseMs: LONG_MS / 4 };
    const [first, second] = [await world.waiting(a, 'stock', brief), await world.waiting(b, 'stock', brief)];
    await world.waiting(a, 'stock', brief);
    await assertKept(b, second);
    await assertKept(a, first);
    const { waiters } = await holder.inspect('stock');
    assertEquals(
      waiters.map(({ instanceId, placeMs }) => [instanceId, placeMs! > LONG_MS / 2]),
      [
        ['a', true],
        ['b', true],
        ['a', false],
      ],
    );
    await keep(a, first, { leaseMs: SHORT_MS });
    await world.expire();
    assertEquals(await world.queue(), ['b', 'a']);
  });

  it('are told when the first of the readers has to renew: the last of them to be left may be dead', async (context) => {
    const { holder, a, b } = context;
    await take(holder, newOwner(holder, 'stock', 'read'), LONG_MS);
    await take(a.store, newOwner(a.store, 'stock', 'read'), LONG_MS / 4);
    const writer = newOwner(b.store, 'stock', 'write');
    for (const reply of [await b.store.acquire(writer, LONG_MS, PATIENT), await keep(b, writer)]) {
      const { ttlMs, soonestMs } = reply as { ttlMs: number; soonestMs: number };
      assertAbove(ttlMs, LONG_MS / 2);
      assertAbove(soonestMs, 0);
      assertAtMost(soonestMs, LONG_MS / 4);
    }
  });

  it('are told of the holder and of the queue, as a waiter that asks is', async ({ world, a, b }) => {
    await world.held();
    const first = await world.waiting(a, 'stock', { leaseMs: LONG_MS / 2 });
    await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    await world.expire();
    const second = newOwner(b.store, 'stock');
    const asked = [await b.store.acquire(second, LONG_MS, PATIENT), await b.store.acquire(second, LONG_MS, PATIENT)];
    const [queued, kept] = [{ status: 'queued' }, { status: 'kept' }];
    const told = {
      ttlMs: ANY_NUMBER,
      soonestMs: ANY_NUMBER,
      seen: { holderCount: 1, holders: [{ instanceId: 'holder' }] },
    };
    const replies = [...asked, await keep(b, second)];
    for (const [index, status] of [queued, queued, kept].entries()) {
      const reply = replies[index] as { ttlMs: number; soonestMs: number };
      assertMatches(reply, { ...status, ...told, place: 2 });
      assertAbove(reply.ttlMs, LONG_MS / 2);
      assertAtMost(reply.ttlMs, LONG_MS);
      // The first one's end. The expired one does not count.
      assertAbove(reply.soonestMs, LONG_MS / 4);
      assertAtMost(reply.soonestMs, LONG_MS / 2);
    }
    const own = (await keep(a, first, { leaseMs: LONG_MS / 4 })) as { place: number; soonestMs: number };
    assert.equal(own.place, 1);
    assertAbove(own.soonestMs, LONG_MS / 8);
    assertAtMost(own.soonestMs, LONG_MS / 4);
  });

  it('are kept twice in one moment as well as once', async ({ world, a, b }) => {
    await world.held();
    const waiters = [await world.waiting(a), await world.waiting(a)];
    await world.waiting(b);
    // The second one is written as it stands.
    const twice = [...waiters, ...waiters].map((waiter) => ({ waiter, leaseMs: LONG_MS }));
    const kept = (place: number): object => ({ status: 'kept', place });
    assertMatches(await a.store.keepPlaces!(twice, 0), [kept(1), kept(2), kept(1), kept(2)]);
    assertEquals(await world.queue(), ['a', 'a', 'b']);
  });

  it('are not made for one that was withdrawn, has expired, or never existed', async ({ world, holder, a, b }) => {
    const owner = await world.held();
    const withdrawn = await world.waiting(a);
    const over = await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    await world.waiting(b);
    await a.store.release(withdrawn);
    await world.expire();
    await assertAsk(a, withdrawn, over, newOwner(a.store, 'stock'), newOwner(a.store, 'free'));
    assertEquals(await world.queue(), ['b']);
    assertEquals(await world.queue('free'), []);
    assert.equal(await holder.verify(owner), true);
  });

  it('are found wherever they were last known to be', async ({ world, a, b }) => {
    await world.held();
    const places: [Peer, LockOwner][] = [];
    for (const peer of [a, b, a]) places.push([peer, await world.waiting(peer)]);
    for (const lastPlace of [1, 2, 3, 4]) {
      for (const [index, [peer, waiter]] of places.entries()) {
        assertMatches(await keep(peer, waiter, { lastPlace }), { status: 'kept', place: index + 1 });
      }
    }
    assertEquals(await world.queue(), ['a', 'b', 'a']);
    await a.store.release(places[0]![1]);
    assertMatches(await keep(...places[1]!, { lastPlace: 2 }), { status: 'kept', place: 1 });
    await assertAsk(...places[0]!);
    assertEquals(await world.queue(), ['b', 'a']);
  });

  it('leave nothing behind, however late they are kept', async ({ subject, world, holder, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a);
    await assertKept(a, waiter);
    await a.store.release(waiter);
    await holder.release(owner);
    await assertAsk(a, waiter);
    assert.equal(await subject.isEmpty(), true);
  });

  it('end when they are kept no more, and leave nothing behind', async ({ subject, world, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a);
    await keep(a, waiter, { leaseMs: SHORT_MS });
    await world.leaseEnds(owner);
    // The queue itself lasts for as long as its longest place was to last.
    await a.store.release(waiter);
    assert.equal(await subject.isEmpty(), true);
  });

  it('take and grant nothing that is free: their owners have to ask', async ({ world, a, b }) => {
    const owner = await world.held();
    const [first, second] = [await world.waiting(a), await world.waiting(b)];
    await world.leaseEnds(owner);
    await assertAsk(a, first);
    await assertAsk(b, second);
    assertMatches(await a.store.inspect('stock'), { mode: null, holders: [] });
    await world.noOtherIsGranted();
    assert.equal((await a.store.acquire(first, LONG_MS, PATIENT)).status, 'granted');
    assertEquals(await world.queue(), ['b']);
    await assertKept(b, second);
  });

  it('end when they are granted: the lease stays as it is', async ({ world, holder, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a);
    await holder.release(owner);
    await world.granted(a, waiter);
    assertEquals(await keep(a, waiter, { leaseMs: 3 * LONG_MS }), { status: 'ask' });
    assertAtMost((await holder.inspect('stock')).ttlMs, LONG_MS);
    assert.equal(await a.store.release(waiter), true);
  });

  it.onEveryServer(
    'are granted for what is left since they were kept, with that stamp, rounded down',
    async ({ world, holder, a }) => {
      const owner = await world.held();
      const waiter = await world.waiting(a, 'stock', { sentAt: 1_000 });
      await keep(a, waiter, { leaseMs: 2 * LONG_MS, sentAt: 86_400_002.9 });
      await world.expire();
      await holder.release(owner);
      assertMatches(await a.grants.next(), { owner: waiter.id, sentAt: 86_400_002 });
      const { ttlMs } = await holder.inspect('stock');
      assertAbove(ttlMs, LONG_MS);
      assertAtMost(ttlMs, 2 * LONG_MS - SHORT_MS);
    },
  );

  it('are granted for no longer than they were kept at last', async ({ world, holder, a }) => {
    const owner = await world.held();
    const waiter = await world.waiting(a, 'stock', { leaseMs: 3 * LONG_MS });
    await keep(a, waiter, { leaseMs: LONG_MS });
    await holder.release(owner);
    await world.granted(a, waiter);
    assertAtMost((await holder.inspect('stock')).ttlMs, LONG_MS);
  });

  for (const wish of everyMode(features)) {
    it(`keep mode and label, in ${wish.mode} mode`, async ({ world, holder, a }) => {
      const owner = await world.holding(world.holder, wish.permits ? permits(3, 3) : WRITE);
      const waiter = { ...newOwner(a.store, 'stock'), ...wish, label: LABEL };
      await enqueue(a.store, waiter);
      const { waiters } = untimed(await holder.inspect('stock'));
      // Ignores the values that the keeper sends about itself.
      await assertKept(a, { resource: 'stock', id: waiter.id, mode: 'exclusive' });
      assertEquals(untimed(await holder.inspect('stock')).waiters, waiters);
      await holder.release(owner);
      await world.granted(a, waiter);
      const { mode, holders } = untimed(await holder.inspect('stock'));
      assert.equal(mode, wish.mode);
      assertMatches(holders, [{ instanceId: 'a', label: { group: 'Orders.pay' } }]);
      assert.equal(holders[0]!.permits, wish.permits?.count);
    });
  }

  it('are kept where readers may not pass a writer, until they are the first', async ({ world, a, b }) => {
    await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    const reader = await world.queued(b, READ);
    await assertKept(b, reader);
    await keep(a, writer, { leaseMs: SHORT_MS });
    await world.expire();
    await assertAsk(b, reader);
    assertEquals(await world.holders(), ['holder']);
    await world.noOtherIsGranted();
    assert.equal((await b.store.acquire(reader, LONG_MS, PATIENT)).status, 'granted');
  });

  for (const [held, wanted] of [
    [READ, WRITE] as const,
    ...(features.semaphores ? [[permits(1, 1), permits(1, 1)] as const] : []),
  ]) {
    it(`are kept where the holder in ${held.mode} mode has renewed since, though its first lease would be over`, async ({
      world,
      a,
      b,
    }) => {
      const owner = await world.holding(world.holder, held, SHORT_MS);
      const waiters = [await world.queued(a, wanted), await world.queued(b, wanted)] as const;
      await world.holder.store.renew(owner, LONG_MS);
      await world.expire();
      for (const [index, peer] of [b, a].entries()) {
        const reply = await keep(peer, waiters[1 - index]!);
        assertMatches(reply, { status: 'kept', ttlMs: ANY_NUMBER, soonestMs: ANY_NUMBER });
        const { ttlMs, soonestMs } = reply as { ttlMs: number; soonestMs: number };
        // As long as they may rest.
        assertAbove(Math.min(ttlMs, soonestMs), LONG_MS / 2);
      }
    });
  }

  if (features.semaphores) {
    it('are kept where permits are taken, until a lease of them has ended', async ({ world, a, b }) => {
      await world.holding(world.holder, permits(1, 2));
      const dying = await world.holding(world.holder, permits(1, 2));
      const [first, second] = [await world.queued(a, permits(1, 2)), await world.queued(b, permits(1, 2))];
      await assertKept(a, first);
      await assertKept(b, second);
      await world.leaseEnds(dying);
      await assertAsk(a, first);
      await assertKept(b, second);
      await world.noOtherIsGranted();
      assert.equal((await a.store.acquire(first, LONG_MS, PATIENT)).status, 'granted');
      await assertKept(b, second);
    });

    it('are not kept for more permits than there will be', async ({ world, holder, a, b }) => {
      await world.holding(world.holder, permits(3, 3));
      const modest = await world.queued(a, permits(1, 3));
      const greedy = await world.queued(b, permits(3, 3));
      await assertKept(b, greedy);
      await holder.resize('stock', 2);
      await assertKept(a, modest);
      await assertAsk(b, greedy);
      const reply = await b.store.acquire({ ...greedy, ...permits(3, 3) }, LONG_MS, PATIENT);
      assertMatches(reply, { status: 'mismatch', found: { mode: 'semaphore', total: 2 } });
    });
  }

  it.onEveryServer(`are answered in the order of the question, ${PER_STEP} at once`, async ({ world, holder, a }) => {
    const owner = await world.held();
    const waiters = Array.from({ length: PER_STEP }, () => newOwner(a.store, 'stock'));
    for (const waiter of waiters) await enqueue(a.store, waiter, { leaseMs: 2 * LONG_MS });
    const withdrawn = waiters.filter((_, index) => index % 3 === 1);
    for (const waiter of withdrawn) await a.store.release(waiter);
    const asked = waiters.map((waiter) => ({ waiter, leaseMs: LONG_MS }));
    const replies = await a.store.keepPlaces!(asked.reverse(), 7);
    assert.equal(replies.length, PER_STEP);
    for (const [index, { waiter }] of asked.entries()) {
      const place = waiters.filter((other) => !withdrawn.includes(other)).indexOf(waiter) + 1;
      const expected = place > 0 ? { status: 'kept', place } : { status: 'ask' };
      assertMatches(replies[index], expected);
    }
    for (const { placeMs } of (await holder.inspect('stock')).waiters) assertAtMost(placeMs, LONG_MS);
    await holder.release(owner);
    assertMatches(await a.grants.next(), { owner: waiters[0]!.id, sentAt: 7 });
  });

  it.onEveryServer('of several resources are kept in one step, each for itself', async ({ world, a }) => {
    const first = 'stock';
    // The resources of one fence, as the caller has to group them.
    const resources = ['order', 'price', first].filter((name) => a.store.fenceOf(name) === a.store.fenceOf(first));
    const waiters: LockOwner[] = [];
    for (const [index, resource] of resources.entries()) {
      await world.held(resource);
      waiters.push(await world.waiting(a, resource, { leaseMs: LONG_MS * (index + 2) }));
    }
    const places = waiters.map((waiter) => ({ waiter, leaseMs: LONG_MS }));
    const replies = await a.store.keepPlaces!(places, 0);
    assertMatches(
      replies,
      waiters.map(() => ({ status: 'kept', place: 1 })),
    );
    for (const resource of resources) {
      const { waiters } = await a.store.inspect(resource);
      assert.equal(waiters.length, 1);
      assertAtMost(waiters[0]!.placeMs, LONG_MS);
    }
  });

  it('are not kept by a store that was closed', async ({ world, a }) => {
    await world.held();
    const waiter = await world.waiting(a);
    await a.store.close();
    await assert.rejects(keep(a, waiter), LockStoreError);
  });
}
