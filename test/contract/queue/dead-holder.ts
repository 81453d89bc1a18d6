import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { enqueue, LONG_MS, newOwner, PATIENT, SHORT_MS, take, untimed } from '../requests.js';

/**
 * Contract of lock stores: if the lease of a dead holder ends while others wait, no message is sent, and the next
 * command repairs the state.
 */
export function describeDeadHolder(suite: QueueSuite): void {
  const { it } = suite.with(async ({ world }) => ({ dead: await world.held() }));

  it('leaves a resource that is shown as free, with its waiters', async ({ world, a, b, dead }) => {
    await world.waiting(a);
    await world.leaseEnds(dead);
    const state = untimed(await b.store.inspect('stock'));
    const waiters = [{ instanceId: 'a', mode: 'exclusive' }];
    assertEquals(state, { resource: 'stock', mode: null, holders: [], ttlMs: 0, waiters });
  });

  it('leaves the resource to the first in the queue, when that asks again', async ({ world, a, b, dead }) => {
    const first = await world.waiting(a);
    await world.waiting(b);
    await world.leaseEnds(dead);
    const reply = await a.store.acquire(first, LONG_MS, PATIENT);
    assert.equal(reply.status, 'granted');
    assertEquals(await world.queue(), ['b']);
    assert.equal(await world.grantBeforeNow(a), undefined);
  });

  it('leaves the resource to the first in the queue, also when that only asks', async ({ world, a, dead }) => {
    const first = await world.waiting(a);
    await world.leaseEnds(dead);
    await take(a.store, first);
    assertEquals(await world.queue(), []);
  });

  for (const [how, queueing, status, queue] of [
    ['only asks', undefined, 'busy', ['b']],
    ['queues', PATIENT, 'queued', ['b', 'a']],
    ['finds the queue too long', { ...PATIENT, maxWaiters: 1 }, 'full', ['b']],
  ] as const) {
    it(`leaves the resource to no newcomer: the first in the queue is granted when one ${how}`, async ({
      world,
      a,
      b,
      dead,
    }) => {
      const first = await world.waiting(a, 'stock', { sentAt: 77 });
      await world.waiting(b);
      await world.leaseEnds(dead);
      const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS, queueing);
      assertMatches(reply, { status, ttlMs: ANY_NUMBER, seen: { holderCount: 1 } });
      assertMatches(reply, { seen: { holders: [{ instanceId: 'a' }] } });
      assertAbove((reply as { ttlMs: number }).ttlMs, LONG_MS / 2);
      assertMatches(await a.grants.next(), { resource: 'stock', owner: first.id, sentAt: 77 });
      assert.equal(await a.store.verify(first), true);
      assertEquals(await world.queue(), queue);
    });
  }

  it('leaves the resource to the first when the second asks again, which keeps its place', async ({
    world,
    a,
    b,
    dead,
  }) => {
    const first = await world.waiting(a);
    const second = await world.waiting(b);
    await world.waiting(a);
    await world.leaseEnds(dead);
    await enqueue(b.store, second);
    assert.equal((await a.grants.next()).owner, first.id);
    assertEquals(await world.queue(), ['b', 'a']);
  });

  it('leaves the resource to the first that is alive when a waiter asks whose place has expired: that one joins the end', async ({
    world,
    a,
    b,
    dead,
  }) => {
    const late = await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    const first = await world.waiting(b);
    const second = await world.waiting(b);
    await world.leaseEnds(dead);
    await enqueue(a.store, late);
    assert.equal((await b.grants.next()).owner, first.id);
    assertEquals(await world.queue(), ['b', 'a']);
    await b.store.release(first);
    await b.store.release(second);
    assert.equal((await a.grants.next()).owner, late.id);
  });

  it.onEveryServer(
    'leaves the resource to the waiter that asks if all before it are dead',
    async ({ subject, world, a, b, dead }) => {
      await world.waiting(a);
      const second = await world.waiting(b);
      await world.waiting(b);
      await subject.kill('a');
      await world.leaseEnds(dead);
      assert.equal((await b.store.acquire(second, LONG_MS, PATIENT)).status, 'granted');
      assert.equal(await b.store.verify(second), true);
      assertEquals(await world.queue(), ['b']);
    },
  );

  it.onEveryServer(
    'leaves the resource to a newcomer if all waiters are dead',
    async ({ subject, world, a, b, dead }) => {
      await world.waiting(a);
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await subject.kill('a');
      await world.leaseEnds(dead);
      const token = await take(b.store, newOwner(b.store, 'stock'));
      const { holders, waiters } = untimed(await b.store.inspect('stock'));
      assertMatches(holders, [{ instanceId: 'b', fencingToken: token }]);
      assertEquals(waiters, []);
    },
  );

  it('leaves the resource to the next when the first one withdraws', async ({ world, a, b, dead }) => {
    const first = await world.waiting(a);
    const second = await world.waiting(b);
    await world.leaseEnds(dead);
    assert.equal(await a.store.release(first), false);
    assert.equal((await b.grants.next()).owner, second.id);
  });

  it('that comes back and releases leaves the resource to the first', async ({ world, a, dead }) => {
    const first = await world.waiting(a);
    await world.leaseEnds(dead);
    assert.equal(await world.holder.store.release(dead), false);
    assert.equal((await a.grants.next()).owner, first.id);
  });

  it('leaves nothing when the only one in the queue withdraws', async ({ subject, world, a, dead }) => {
    const only = await world.waiting(a);
    await world.leaseEnds(dead);
    assert.equal(await a.store.release(only), false);
    assert.equal(await subject.isEmpty(), true);
  });
}
