import assert from 'node:assert/strict';
import type { LockOwner, RotateReply } from '../../../lib/kernel/store/lock-store.js';
import { ANY_NUMBER, ANY_VALUE, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { enqueue, LONG_MS, newOwner, PATIENT, take } from '../requests.js';

const QUEUED = { status: 'queued', ttlMs: ANY_NUMBER, seen: ANY_VALUE };

/** Contract of lock stores: a release and the next owner's acquire, in one step. */
export function describeRotation(suite: QueueSuite): void {
  const { describe, it } = suite.with(({ holder }) => {
    const next = newOwner(holder, 'stock');
    const rotate = (owner: LockOwner, to = next): Promise<RotateReply> =>
      holder.rotate(owner, to, LONG_MS, { ...PATIENT, sentAt: 99.5 });
    return { next, rotate };
  });

  it('grants the resource to the next owner at once if there is no waiter', async ({ world, holder, rotate, next }) => {
    const owner = newOwner(holder, 'stock');
    const token = await take(holder, owner);
    const { released, next: reply } = await rotate(owner);
    assert.equal(released, true);
    assertEquals(reply, { status: 'granted', fencingToken: ANY_NUMBER });
    const { fencingToken } = reply as { fencingToken: number };
    assertAbove(fencingToken, token);
    assert.equal(await holder.verify(owner), false);
    assert.equal(await holder.verify(next), true);
    assert.equal(await world.grantBeforeNow(world.holder), undefined);
    // The reply was lost, and it is sent again.
    assertEquals(await rotate(owner), { released: false, next: { status: 'granted', fencingToken } });
  });

  it.onEveryServer(
    'grants the resource to the first in the queue; the next owner stands at its end',
    async ({ world, holder, a, b, rotate, next }) => {
      const owner = await world.held();
      const first = await world.waiting(a);
      const second = await world.waiting(b);
      const reply = await rotate(owner);
      assertMatches(reply, { released: true, next: QUEUED });
      assertAbove((reply.next as { ttlMs: number }).ttlMs, LONG_MS / 2);
      assert.equal((await a.grants.next()).owner, first.id);
      assertEquals(await world.queue(), ['b', 'holder']);
      await a.store.release(first);
      assert.equal((await b.grants.next()).owner, second.id);
      await b.store.release(second);
      assertMatches(await world.holder.grants.next(), { owner: next.id, sentAt: 99 });
      assert.equal(await holder.verify(next), true);
    },
  );

  it('changes nothing when it is sent again', async ({ world, a, b, rotate }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await rotate(owner);
    await world.waiting(b);
    const { fencingToken } = await a.grants.next();
    assertMatches(await rotate(owner), { released: false, next: QUEUED });
    assertEquals(await world.queue(), ['b', 'holder', 'b']);
    assert.equal(await take(a.store, first), fencingToken);
    assert.equal(await world.grantBeforeNow(b), undefined);
  });

  it('finds what became of the next owner when it is sent again later', async ({ world, a, rotate }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await rotate(owner);
    await a.store.release(first);
    const { fencingToken } = await world.holder.grants.next();
    assertEquals(await rotate(owner), { released: false, next: { status: 'granted', fencingToken } });
  });

  it.onEveryServer(
    'grants the resource to the next owner if all waiters are dead',
    async ({ subject, world, a, rotate }) => {
      const owner = await world.held();
      await world.waiting(a);
      await subject.kill('a');
      assertMatches(await rotate(owner), { released: true, next: { status: 'granted' } });
      assertEquals(await world.queue(), []);
    },
  );

  it('keeps the place of a next owner that stands in the queue already', async ({
    world,
    holder,
    a,
    b,
    next,
    rotate,
  }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await enqueue(holder, next);
    await world.waiting(b);
    assertMatches(await rotate(owner), { released: true, next: QUEUED });
    assert.equal((await a.grants.next()).owner, first.id);
    assertEquals(await world.queue(), ['holder', 'b']);
  });

  it('releases also if the queue is too long for the next owner', async ({ world, holder, a, b, next }) => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    const reply = await holder.rotate(owner, next, LONG_MS, { ...PATIENT, maxWaiters: 1 });
    assertEquals(reply, {
      released: true,
      next: { status: 'full', ttlMs: ANY_NUMBER, seen: ANY_VALUE },
    });
    assert.equal((await a.grants.next()).owner, first.id);
    assertEquals(await world.queue(), ['b']);
  });

  for (const mode of ['exclusive', 'reentrant'] as const) {
    it(`grants in the mode of the next owner (${mode})`, async ({ world, holder, rotate }) => {
      const owner = await world.held('stock', mode === 'exclusive' ? 'reentrant' : 'exclusive');
      const next = newOwner(holder, 'stock', mode);
      assertMatches(await rotate(owner, next), { released: true, next: { status: 'granted' } });
      assert.equal((await holder.inspect('stock')).mode, mode);
      assert.equal(await holder.setDepth(next, 2, LONG_MS), mode === 'reentrant');
    });
  }

  describe('by another owner', () => {
    it('leaves the lock alone; the next owner stands in the queue', async ({ world, holder, a, rotate }) => {
      const other = newOwner(a.store, 'stock');
      const token = await take(a.store, other);
      const owner = newOwner(holder, 'stock');
      assertMatches(await rotate(owner), { released: false, next: QUEUED });
      assertEquals(await world.queue(), ['holder']);
      assert.equal(await take(a.store, other), token);
      assert.equal(await world.grantBeforeNow(world.holder), undefined);
    });

    it('grants the next owner a resource that is free', async ({ holder, rotate, next }) => {
      const owner = newOwner(holder, 'stock');
      assertMatches(await rotate(owner), { released: false, next: { status: 'granted' } });
      assert.equal(await holder.verify(next), true);
    });

    it('lets that owner leave the queue', async ({ world, a, b, rotate }) => {
      await take(a.store, newOwner(a.store, 'stock'));
      const owner = await world.waiting(world.holder);
      await world.waiting(b);
      assertMatches(await rotate(owner), { released: false, next: QUEUED });
      assertEquals(await world.queue(), ['b', 'holder']);
    });

    it('grants a resource that a dead holder left to the waiters', async ({ world, a, rotate }) => {
      const owner = await world.held();
      const first = await world.waiting(a);
      await world.leaseEnds(owner);
      assertMatches(await rotate(owner), { released: false, next: QUEUED });
      assert.equal((await a.grants.next()).owner, first.id);
    });
  });
}
