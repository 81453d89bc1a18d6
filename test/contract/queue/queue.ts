import assert from 'node:assert/strict';
import {
  type LockOwner,
  type QueuedPlace,
  type Queueing,
  SUPERSEDES,
  YIELDS,
} from '../../../lib/kernel/store/lock-store.js';
import type { PlaceInLine } from '../../../lib/kernel/api/lock-options.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { ANY_NUMBER, ANY_VALUE, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import { eventually } from '../../support/expect/eventually.js';
import type { Peer, QueueSuite } from '../queue-world.js';
import type { StoreFeatures } from '../subject.js';
import { enqueue, LONG_MS, newOwner, PATIENT, SHORT_MS, take } from '../requests.js';

/** Contract of lock stores: the waiters in the queue of a resource, and their order. */
export function describeQueue(inWorld: QueueSuite, features: StoreFeatures): void {
  const { describe, it } = inWorld;

  it('is joined at its end, by as many waiters of an instance as ask', async ({ world, a, b }) => {
    await world.held();
    for (const peer of [a, b, a]) await world.waiting(peer);
    assertEquals(await world.queue(), ['a', 'b', 'a']);
  });

  it('is not joined if the resource is free', async ({ world, a }) => {
    const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS, PATIENT);
    assert.equal(reply.status, 'granted');
    assertEquals(await world.queue(), []);
  });

  it('tells a waiter that joins or asks again how long the lease of the holder lasts', async ({ world, a }) => {
    await world.held();
    const waiter = newOwner(a.store, 'stock');
    for (const _ of ['joins', 'asks again']) {
      const reply = await a.store.acquire(waiter, SHORT_MS, PATIENT);
      assertMatches(reply, { status: 'queued', ttlMs: ANY_NUMBER, seen: ANY_VALUE });
      assertAbove((reply as { ttlMs: number }).ttlMs, LONG_MS / 2);
    }
  });

  it.onEveryServer('keeps the place of a waiter that asks again', async ({ world, a, b }) => {
    await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await enqueue(a.store, first);
    assertEquals(await world.queue(), ['a', 'b']);
  });

  it.onEveryServer('forgets a waiter that does not ask again in time', async ({ world, a, b }) => {
    await world.held();
    const diligent = await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await enqueue(a.store, diligent, { leaseMs: LONG_MS });
    await world.expire();
    assertEquals(await world.queue(), ['a']);
  });

  it('lasts as long as the most patient one in it, not as long as the last', async ({ world, a, b }) => {
    await world.held();
    await world.waiting(a, 'stock', { leaseMs: LONG_MS });
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await world.expire();
    assertEquals(await world.queue(), ['a']);
  });

  it('is not joined by a caller that only asks', async ({ world, a }) => {
    await world.held();
    const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS);
    assert.equal(reply.status, 'busy');
    assertEquals(await world.queue(), []);
  });

  it('leaves a waiter that only asks as it is: in its place, for no longer than before', async ({ world, a, b }) => {
    await world.held();
    const patient = await world.waiting(a);
    const hasty = await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    assert.equal((await b.store.acquire(hasty, LONG_MS)).status, 'busy');
    assert.equal((await a.store.acquire(patient, SHORT_MS)).status, 'busy');
    await world.expire();
    assertEquals(await world.queue(), ['a']);
  });

  it.onEveryServer('is left by a waiter that got the resource in another way', async ({ world, a, b }) => {
    const owner = await world.held();
    const runner = await world.waiting(a);
    await world.waiting(b);
    await world.leaseEnds(owner);
    const claim = {
      owner: runner,
      leaseMs: LONG_MS,
      claimTtlMs: LONG_MS,
      overlap: 'skip',
      takeOver: 'nothing',
    } as const;
    assert.equal((await a.jobs.claim({ resource: 'stock', tick: 'noon' }, claim)).status, 'granted');
    assert.equal((await a.store.acquire(runner, LONG_MS, PATIENT)).status, 'granted');
    assertEquals(await world.queue(), ['b']);
  });

  it.onEveryServer('takes a call with maxAhead only if no more calls wait before it', async ({ subject, world }) => {
    await world.held();
    const end = new AbortController();
    const options = { waitMs: Infinity, signal: end.signal };
    const open = async (name: string) => new LockClient({ store: (await subject.open(name)).locks });
    const [one, two] = [await open('one'), await open('two')];
    const calls = [one.acquire('stock', { ...options, maxAhead: 0 })];
    await eventually(async () => assertEquals(await world.queue(), ['one']));
    await assert.rejects(two.acquire('stock', { ...options, maxAhead: 0 }), { code: 'LOCK_QUEUE_FULL', maxAhead: 0 });
    calls.push(two.acquire('stock', { ...options, maxAhead: 1 }));
    await eventually(async () => assertEquals(await world.queue(), ['one', 'two']));
    end.abort();
    for (const call of calls) await assert.rejects(call, { code: 'LOCK_ABORTED' });
  });

  it.onEveryServer('tells a call with onWait how many wait before it', async ({ subject, world }) => {
    await world.held();
    const end = new AbortController();
    const told: (readonly [name: string, ahead: number, holder: string | undefined])[] = [];
    const wait = async (name: string) => {
      const client = new LockClient({ store: (await subject.open(name)).locks });
      const onWait = ({ ahead, holder }: PlaceInLine) => told.push([name, ahead, holder?.instanceId]);
      return client.acquire('stock', { waitMs: Infinity, signal: end.signal, onWait });
    };
    const calls = [wait('one')];
    await eventually(async () => assertEquals(await world.queue(), ['one']));
    calls.push(wait('two'));
    await eventually(() => {
      assertEquals(told, [
        ['one', 0, 'holder'],
        ['two', features.oneQueue ? 1 : 0, 'holder'],
      ]);
    });
    end.abort();
    for (const call of calls) await assert.rejects(call, { code: 'LOCK_ABORTED' });
  });

  describe('that is full', () => {
    const TWO = { ...PATIENT, maxWaiters: 2 };
    const { it } = inWorld.with(async ({ world, a, b }) => {
      await world.held();
      const first = await world.waiting(a, 'stock', TWO);
      await world.waiting(b, 'stock', TWO);
      return { first };
    });

    it('takes no other waiter, and says how long the lease of the holder lasts', async ({ world, b }) => {
      const reply = await b.store.acquire(newOwner(b.store, 'stock'), LONG_MS, TWO);
      assertEquals(reply, { status: 'full', ttlMs: ANY_NUMBER, seen: ANY_VALUE });
      assertAbove((reply as { ttlMs: number }).ttlMs, LONG_MS / 2);
      assertEquals(await world.queue(), ['a', 'b']);
    });

    it('takes a waiter that accepts a longer queue', async ({ world, a }) => {
      await world.waiting(a, 'stock', { maxWaiters: 3 });
      assertEquals(await world.queue(), ['a', 'b', 'a']);
    });

    it('lets those in it ask again', async ({ world, a, first }) => {
      await enqueue(a.store, first, { ...TWO, maxWaiters: 1 });
      assertEquals(await world.queue(), ['a', 'b']);
    });

    it('has room again when a waiter withdraws', async ({ world, a, first }) => {
      await a.store.release(first);
      await world.waiting(a, 'stock', TWO);
      assertEquals(await world.queue(), ['b', 'a']);
    });

    it('has room again when a waiter behind a living one does not ask again in time', async ({ world, a, b }) => {
      const owners = [await world.waiting(a, 'stock', { maxWaiters: 3, leaseMs: SHORT_MS })];
      owners.push(await world.waiting(b, 'stock', { maxWaiters: 4, leaseMs: SHORT_MS }));
      await world.expire();
      const FOUR = { ...PATIENT, maxWaiters: 4 };
      await world.waiting(a, 'stock', FOUR);
      await world.waiting(a, 'stock', FOUR);
      assertEquals(await world.queue(), ['a', 'b', 'a', 'a']);
      assert.equal((await b.store.acquire(newOwner(b.store, 'stock'), LONG_MS, FOUR)).status, 'full');
      // Waiters that were dropped join the end.
      await enqueue(b.store, owners[1]!, { maxWaiters: 5 });
      assertEquals(await world.queue(), ['a', 'b', 'a', 'a', 'b']);
    });

    it('counts none of many that have died behind a living one, also for a waiter that accepts few', async ({
      subject,
      world,
      a,
      b,
    }) => {
      for (let i = 0; i < 40; i++) await world.waiting(b, 'stock', { leaseMs: 10 * SHORT_MS });
      await world.expire();
      await subject.pass(10 * SHORT_MS);
      await world.waiting(a, 'stock', { maxWaiters: 3 });
      assertEquals(await world.queue(), ['a', 'b', 'a']);
    });

    it('has room again when the first one does not ask again in time', async ({ world, a, first }) => {
      await enqueue(a.store, first, { leaseMs: SHORT_MS });
      await world.expire();
      await world.waiting(a, 'stock', TWO);
      assertEquals(await world.queue(), ['b', 'a']);
    });
  });

  for (const [how, place, rest] of [
    ['first', 0, ['b', 'a']],
    ['middle', 1, ['a', 'a']],
    ['last', 2, ['a', 'b']],
  ] as const) {
    it(`is left by the ${how} one when it withdraws, and nothing else changes`, async ({ world, holder, a, b }) => {
      const owner = await world.held();
      const waiters = [await world.waiting(a), await world.waiting(b), await world.waiting(a)];
      const { store } = [a, b, a][place]!;
      for (const _sent of ['once', 'again']) {
        assert.equal(await store.release(waiters[place]!), false);
        assertEquals(await world.queue(), rest);
      }
      assert.equal(await holder.verify(owner), true);
      assert.equal(await world.grantBeforeNow(a), undefined);
      assert.equal(await world.grantBeforeNow(b), undefined);
    });
  }

  describe('leaves nothing behind', () => {
    it('when the last one of the waiters has released', async ({ subject, world, holder, a }) => {
      const owner = await world.held();
      const waiters = [await world.waiting(a), await world.waiting(a)];
      assert.equal(await subject.isEmpty(), false);
      await holder.release(owner);
      for (const waiter of waiters) await a.store.release(waiter);
      assert.equal(await subject.isEmpty(), true);
    });

    it('when all waiters have withdrawn', async ({ subject, world, holder, a }) => {
      const owner = await world.held();
      const waiters = [await world.waiting(a), await world.waiting(a)];
      for (const waiter of waiters) await a.store.release(waiter);
      await holder.release(owner);
      assert.equal(await subject.isEmpty(), true);
    });

    it('when all waiters have withdrawn, and the holder has died', async ({ subject, world, a }) => {
      const owner = await world.held();
      await a.store.release(await world.waiting(a));
      await world.leaseEnds(owner);
      assert.equal(await subject.isEmpty(), true);
    });

    it('when the holder and all waiters have died', async ({ subject, world, a, b }) => {
      const owner = await world.held();
      await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await world.leaseEnds(owner);
      assert.equal(await subject.isEmpty(), true);
    });

    it('when one that came to a full queue of dead ones has died too', async ({ subject, world, a, b }) => {
      const owner = await world.held();
      const patient = await world.waiting(a);
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await a.store.release(patient);
      await world.expire();
      await world.waiting(a, 'stock', { leaseMs: 2 * SHORT_MS, maxWaiters: 1 });
      await subject.pass(3 * SHORT_MS);
      await world.leaseEnds(owner);
      assert.equal(await subject.isEmpty(), true);
    });

    it('of the numbers of waiters that gave up behind a patient one', async ({ subject, world, holder, a, b }) => {
      const owner = await world.held();
      const patient = await world.waiting(a);
      for (let i = 0; i < 20; i++) await b.store.release(await world.waiting(b));
      const next = await world.waiting(b);
      await holder.release(owner);
      await a.store.release(patient);
      assert.equal(await b.store.verify(next), true);
      await b.store.release(next);
      assert.equal(await subject.isEmpty(), true);
    });

    it('when the waiters have died, and the holder has released', async ({ subject, world, holder, a, b }) => {
      const owner = await world.held();
      await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
      await world.expire();
      await holder.release(owner);
      assert.equal(await subject.isEmpty(), true);
      await take(b.store, newOwner(b.store, 'stock'));
    });
  });

  describe('where only the newest call counts', () => {
    const { it: itTells } = inWorld.where(({ holder }) => holder.noSuperseding === undefined);
    const newWaiter = ({ store }: Peer, mark: string): LockOwner => {
      const owner = newOwner(store, 'stock');
      return { ...owner, id: owner.id + mark };
    };
    const told = async (peer: Peer, ...owners: LockOwner[]): Promise<void> => {
      await eventually(() => {
        assertEquals(
          peer.grants.notices.map(({ owner, by }) => ({ owner, by })),
          owners.map(({ id }) => ({ owner: id, by: 'b' })),
        );
      });
    };

    itTells.onEveryServer('the holder is told of a newer call, where both agree to it', async ({ world, a, b }) => {
      const holder = newWaiter(a, YIELDS);
      await take(a.store, holder);
      const newer = newWaiter(b, SUPERSEDES);
      assertMatches(await b.store.acquire(newer, LONG_MS, PATIENT), { status: 'queued', told: 1 });
      await told(a, holder);
      // Each time it asks.
      assertMatches(await b.store.acquire(newer, LONG_MS, { ...PATIENT, maxWaiters: 0 }), {
        status: 'queued',
        told: 1,
      });
      await told(a, holder, holder);
      assert.equal(await a.store.verify(holder), true);
      assertEquals(await world.queue(), ['b']);
      await a.store.release(holder);
      await world.granted(b, newer);
    });

    itTells.onEveryServer('so are the waiters before it, and none behind it', async ({ world, a, b }) => {
      await world.held();
      const older = newWaiter(a, YIELDS + SUPERSEDES);
      await enqueue(a.store, older);
      await world.waiting(a);
      const newer = newWaiter(b, YIELDS + SUPERSEDES);
      const reply = await b.store.acquire(newer, LONG_MS, PATIENT);
      assert.equal(reply.status, 'queued');
      assert.equal((reply as QueuedPlace).told, undefined);
      await told(a, older);
      await enqueue(a.store, older);
      assertEquals(b.grants.notices, []);
      assertEquals(await world.queue(), ['a', 'a', 'b']);
    });

    itTells('no holder is told that has not agreed, or by a call that has not', async ({ world, a, b }) => {
      const plain = await world.held();
      const reply = await b.store.acquire(newWaiter(b, SUPERSEDES), LONG_MS, PATIENT);
      assert.equal((reply as QueuedPlace).told, undefined);
      await world.holder.store.release(plain);
      await b.grants.next();
      const agreed = { ...newWaiter(a, YIELDS), resource: 'other' };
      await take(a.store, agreed);
      await enqueue(b.store, { ...newWaiter(b, YIELDS), resource: 'other' });
      await world.noOtherIsGranted();
      assertEquals(a.grants.notices, []);
    });

    itTells(
      'the next holder of one process is told, which is granted in the step of a release',
      async ({ world, a, b }) => {
        const first = await world.held();
        const next = newWaiter(a, YIELDS);
        await enqueue(a.store, next);
        const newer = newWaiter(world.holder, SUPERSEDES);
        const queueing = { sentAt: 0, maxWaiters: 9 };
        assertMatches(await world.holder.store.rotate(first, newer, LONG_MS, queueing), {
          released: true,
          next: { status: 'queued', told: 1 },
        });
        await world.granted(a, next);
        await eventually(() => assertMatches(a.grants.notices, [{ owner: next.id, by: 'holder' }]));
        assertEquals(b.grants.notices, []);
      },
    );

    const began = (ageMs: number, ttlMs = LONG_MS): Queueing => ({ ...PATIENT, age: { ageMs, ttlMs } });

    itTells.onEveryServer(
      'one that began before another one that has joined does not join, and ends none',
      async ({ world, a, b }) => {
        const plain = await world.held();
        const newer = newWaiter(a, YIELDS + SUPERSEDES);
        assertMatches(await a.store.acquire(newer, LONG_MS, began(5_000)), { status: 'queued' });
        const older = newWaiter(b, YIELDS + SUPERSEDES);
        assertMatches(await b.store.acquire(older, LONG_MS, began(60_000)), { status: 'full', newer: 'a' });
        assertEquals([...a.grants.notices, ...(await world.queue())], ['a']);
        // It asks again, as old as it is by now. Its first command may have taken long.
        assertMatches(await a.store.acquire(newer, LONG_MS, began(60_000)), { status: 'queued' });
        await world.holder.store.release(plain);
        await world.granted(a, newer);
        assertMatches(await b.store.acquire(older, LONG_MS, began(60_000)), { status: 'full', newer: 'a' });
        await a.store.release(newer);
        // Nor when the newer one has ended.
        assertMatches(await b.store.acquire(older, LONG_MS, began(60_000)), { status: 'full', newer: 'a' });
        // One that began later is granted at once.
        assertMatches(await b.store.acquire(older, LONG_MS, began(0)), { status: 'granted' });
      },
    );

    itTells('one that began before another one joins when that is compared no more', async ({ world, a, b }) => {
      const newer = newWaiter(a, SUPERSEDES);
      assertMatches(await a.store.acquire(newer, LONG_MS, began(0, SHORT_MS)), { status: 'granted' });
      const older = newWaiter(b, SUPERSEDES);
      assertMatches(await b.store.acquire(older, LONG_MS, began(60_000)), { status: 'full', newer: 'a' });
      await world.expire();
      assertMatches(await b.store.acquire(older, LONG_MS, began(60_000)), { status: 'queued' });
    });

    itTells('one that is rotated to, with a label, is compared as well', async ({ world, a }) => {
      const first = await world.held();
      const newer = newWaiter(a, SUPERSEDES);
      assertMatches(await a.store.acquire(newer, LONG_MS, began(0)), { status: 'queued' });
      const older = { ...newWaiter(world.holder, SUPERSEDES), label: '{"user":"7"}' };
      assertMatches(await world.holder.store.rotate(first, older, LONG_MS, began(60_000)), {
        released: true,
        next: { status: 'full', newer: 'a' },
      });
      await world.granted(a, newer);
    });

    itTells('one that may not join keeps the place that it has, and joins none', async ({ world, a, b }) => {
      await world.held();
      const standing = await world.waiting(a);
      const none = { ...PATIENT, maxWaiters: 0 };
      assertMatches(await a.store.acquire(standing, LONG_MS, none), { status: 'queued' });
      await a.store.release(standing);
      for (const peer of [a, b]) {
        assertMatches(await peer.store.acquire(newOwner(peer.store, 'stock'), LONG_MS, none), { status: 'full' });
      }
      assertEquals(await world.queue(), []);
    });
  });
}
