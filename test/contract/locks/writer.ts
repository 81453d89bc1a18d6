import assert from 'node:assert/strict';
import { assertAbove, assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { LONG_MS, newOwner, PATIENT, READ, SHORT_MS, take, WRITE } from '../requests.js';

/** Contract of lock stores: a writer waits for earlier readers, and later callers wait for the writer. */
export function describeWriter({ it }: QueueSuite): void {
  it('has a depth, as a reentrant holder has', async ({ holder, a, b }) => {
    const writer = newOwner(a.store, 'stock', 'write');
    const fencingToken = await take(a.store, writer);
    for (const depth of [2, 2, 3, 1]) {
      assert.equal(await a.store.setDepth(writer, depth, 2 * LONG_MS), true);
      assert.equal(await b.store.setDepth(newOwner(b.store, 'stock', 'write'), 9, LONG_MS), false);
      assertMatches(await holder.inspect('stock'), { mode: 'write', holders: [{ fencingToken, depth }] });
    }
    assertAbove((await holder.inspect('stock')).ttlMs, LONG_MS);
  });

  it('waits for the last of the readers', async ({ world, holder, a, b }) => {
    const readers = [await world.holding(a, READ), await world.holding(b, READ)];
    const writer = await world.queued(a, WRITE);
    await a.store.release(readers[0]!);
    await world.noOtherIsGranted();
    await b.store.release(readers[1]!);
    await world.granted(a, writer);
    assertMatches(await holder.inspect('stock'), {
      mode: 'write',
      holders: [{ instanceId: 'a' }],
      waiters: [],
    });
  });

  it('is delayed by a dead reader for its lease at most, while the live ones go on', async ({ world, a, b }) => {
    const dead = await world.holding(a, READ, SHORT_MS);
    const alive = await world.holding(b, READ);
    const writer = await world.queued(a, WRITE);
    await world.expire();
    assertEquals(await world.holders(), ['b']);
    assert.equal(await a.store.verify(dead), false);
    assert.equal(await a.store.renew(dead, LONG_MS), false);
    assert.equal(await a.store.release(dead), false);
    assert.equal(await b.store.renew(alive, LONG_MS), true);
    await world.noOtherIsGranted();
    await b.store.release(alive);
    await world.granted(a, writer);
  });

  it('gets the resource when it asks again after the last of the readers has died', async ({ world, a, b }) => {
    await world.holding(a, READ, SHORT_MS);
    await world.holding(b, READ, SHORT_MS);
    const writer = await world.queued(a, WRITE);
    await world.expire();
    assert.equal((await a.store.acquire(writer, LONG_MS, PATIENT)).status, 'granted');
  });

  it('that waits keeps new readers out: they queue behind it, or find the resource busy', async ({
    world,
    holder,
    a,
    b,
  }) => {
    const reader = await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    assert.equal((await world.ask(b, READ)).status, 'busy');
    const late = await world.queued(b, READ);
    assertEquals(await world.holders(), ['holder']);
    await holder.release(reader);
    await world.granted(a, writer);
    await a.store.release(writer);
    await world.granted(b, late);
  });

  it('that withdraws at the head admits the readers behind it at once, and no waiter further behind', async ({
    world,
    a,
    b,
  }) => {
    await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    const readers = [await world.queued(b, READ), await world.queued(b, READ)];
    await world.queued(a, WRITE);
    await world.queued(b, READ);
    assert.equal(await a.store.release(writer), false);
    await world.granted(b, ...readers);
    await world.noOtherIsGranted();
    assertEquals(await world.holders(), ['holder', 'b', 'b']);
    assertEquals(await world.queue(), ['a', 'b']);
  });

  it('that withdraws further behind admits no waiter', async ({ world, a, b }) => {
    await world.holding(world.holder, READ);
    await world.queued(a, WRITE);
    const second = await world.queued(a, WRITE);
    await world.queued(b, READ);
    await a.store.release(second);
    await world.noOtherIsGranted();
    assertEquals(await world.queue(), ['a', 'b']);
  });

  it('whose place at the head has expired keeps out no caller', async ({ world, a, b }) => {
    await world.holding(world.holder, READ);
    await world.queued(a, WRITE, { leaseMs: SHORT_MS });
    const readers = [await world.queued(b, READ), await world.queued(b, READ)];
    await world.expire();
    assert.equal((await b.store.acquire(readers[0]!, LONG_MS, PATIENT)).status, 'granted');
    assert.equal((await world.ask(a, READ)).status, 'granted');
    await world.granted(b, readers[1]!);
    assertEquals(await world.queue(), []);
  });

  it.onEveryServer('whose instance is gone is passed over', async ({ subject, world, holder, a, b }) => {
    const first = await world.holding(world.holder, WRITE);
    await world.queued(a, READ);
    await world.queued(a, WRITE);
    const reader = await world.queued(b, READ);
    await subject.kill('a');
    await holder.release(first);
    await world.granted(b, reader);
    assertEquals(await world.holders(), ['b']);
    assertEquals(await world.queue(), []);
  });
}
