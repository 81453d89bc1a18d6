import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals, assertExcludes, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { LONG_MS, newOwner, PATIENT, permits, SHORT_MS, take, untimed } from '../requests.js';

const ONE = permits(1, 3);
const TWO = permits(2, 3);
const ALL = permits(3, 3);

/** Contract of lock stores: a semaphore grants as many permits as it has. */
export function describeSemaphore({ it }: QueueSuite): void {
  it('has as many holders as permits, each with its own token and expiry', async ({ world, holder, a, b }) => {
    const tokens: number[] = [];
    for (const [{ store }, wish, leaseMs] of [
      [a, ONE, LONG_MS],
      [b, TWO, 3 * LONG_MS],
    ] as const) {
      tokens.push(await take(store, { ...newOwner(store, 'stock'), ...wish }, leaseMs));
    }
    assert.equal((await world.ask(a, ONE)).status, 'busy');
    const ttlMs = ANY_NUMBER;
    const state = untimed(await holder.inspect('stock'));
    assertEquals(state, {
      resource: 'stock',
      mode: 'semaphore',
      holders: [
        { instanceId: 'a', fencingToken: tokens[0], ttlMs, depth: 1, permits: 1 },
        { instanceId: 'b', fencingToken: tokens[1], ttlMs, depth: 1, permits: 2 },
      ],
      ttlMs: state.holders[1]!.ttlMs,
      permits: { total: 3, available: 0 },
      waiters: [],
    });
    assertAtMost(state.holders[0]!.ttlMs, LONG_MS);
    assertAbove(state.ttlMs, 2 * LONG_MS);
  });

  it('grants all permits of a request, or none', async ({ world, holder, a, b }) => {
    await world.holding(a, TWO);
    assert.equal((await world.ask(b, TWO)).status, 'busy');
    assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 1 });
    assert.equal((await world.ask(b, ONE)).status, 'granted');
  });

  it('tells others when the first of the leases ends: then there may be permits', async ({ world, a, b }) => {
    await world.holding(a, ONE, 3 * LONG_MS);
    await world.holding(b, ONE, LONG_MS);
    await world.holding(a, ONE, 2 * LONG_MS);
    for (const queueing of [undefined, PATIENT]) {
      const { ttlMs } = (await world.ask(b, ONE, queueing)) as { ttlMs: number };
      assertAbove(ttlMs, LONG_MS / 2);
      assertAtMost(ttlMs, LONG_MS);
    }
  });

  it.onEveryServer(
    'grants a permit that is released to the first waiter, and to no other',
    async ({ world, holder, a, b }) => {
      const owner = await world.holding(world.holder, ONE);
      await world.holding(world.holder, TWO);
      const first = await world.queued(a, ONE);
      await world.queued(b, ONE);
      assert.equal(await holder.release(owner), true);
      await world.granted(a, first);
      await world.noOtherIsGranted();
      assertEquals(untimed(await holder.inspect('stock')).waiters, [
        { instanceId: 'b', mode: 'semaphore', permits: 1 },
      ]);
      assert.equal(await holder.release(owner), false);
      await world.noOtherIsGranted();
    },
  );

  it('has permits that were taken at once back at once', async ({ world, holder, a, b }) => {
    const owner = await world.holding(world.holder, ALL);
    const waiters = [await world.queued(a, ONE), await world.queued(a, TWO)];
    await world.queued(b, ONE);
    await holder.release(owner);
    await world.granted(a, ...waiters);
    await world.noOtherIsGranted();
    assertMatches(await holder.inspect('stock'), {
      holders: [{ permits: 1 }, { permits: 2 }],
      permits: { total: 3, available: 0 },
    });
  });

  it('does not let small requests overtake a large one', async ({ world, holder, a, b }) => {
    const owners = [await world.holding(world.holder, ONE), await world.holding(world.holder, ONE)];
    const large = await world.queued(a, ALL);
    assert.equal((await world.ask(b, ONE)).status, 'busy'); // though a permit is free
    const small = await world.queued(b, ONE);
    await holder.release(owners[0]!);
    await world.noOtherIsGranted();
    await holder.release(owners[1]!);
    await world.granted(a, large);
    await world.noOtherIsGranted();
    await a.store.release(large);
    await world.granted(b, small);
  });

  it('grants the permits to the waiters behind a large request that is withdrawn', async ({ world, holder, a, b }) => {
    await world.holding(world.holder, ONE);
    const large = await world.queued(a, ALL);
    const small = [await world.queued(b, ONE), await world.queued(b, ONE)];
    assert.equal(await a.store.release(large), false);
    await world.granted(b, ...small);
    assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 0 });
  });

  it('gets back the permits of a dead holder when its lease expires', async ({ world, holder, a, b }) => {
    const dead = await world.holding(a, TWO, SHORT_MS);
    const alive = await world.holding(b, ONE);
    const first = await world.queued(a, ONE);
    const second = await world.queued(b, ONE);
    await world.expire();
    assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 2 });
    assert.equal(await a.store.renew(dead, LONG_MS), false);
    assert.equal(await a.store.verify(dead), false);
    assert.equal((await a.store.acquire(first, LONG_MS, PATIENT)).status, 'granted');
    assert.equal((await world.ask(a, ONE)).status, 'busy');
    await world.granted(b, second);
    assert.equal(await b.store.verify(alive), true);
  });

  it('lets only the owner renew and release, and only its own permits', async ({ world, holder, a, b }) => {
    const first = await world.holding(a, ONE);
    const second = await world.holding(b, TWO);
    assert.equal(await b.store.renew({ ...newOwner(b.store, 'stock'), ...ONE }, LONG_MS), false);
    assert.equal(await b.store.release({ ...newOwner(b.store, 'stock'), ...ONE }), false);
    assert.equal(await b.store.setDepth(second, 2, LONG_MS), false);
    assert.equal(await b.store.renew(second, 2 * LONG_MS), true);
    const { holders } = untimed(await holder.inspect('stock'));
    assertAtMost(holders[0]!.ttlMs, LONG_MS);
    assertAbove(holders[1]!.ttlMs, LONG_MS);
    assert.equal(await a.store.release(first), true);
    assertEquals(await world.holders(), ['b']);
  });

  it('counts a holder that asks again once, with the same token', async ({ holder, a }) => {
    const owner = { ...newOwner(a.store, 'stock'), ...TWO };
    const token = await take(a.store, owner);
    assert.equal(await take(a.store, owner), token);
    assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 1 });
  });

  it.onEveryServer(
    'passes over an instance that is gone: its permits go to the next waiter',
    async ({ subject, world, holder, a, b }) => {
      const owner = await world.holding(world.holder, ALL);
      await world.queued(a, TWO);
      const waiters = [await world.queued(b, TWO), await world.queued(b, ONE)];
      await subject.kill('a');
      await holder.release(owner);
      await world.granted(b, ...waiters);
      assertEquals((await holder.inspect('stock')).permits, { total: 3, available: 0 });
    },
  );

  it('rotates permits to the next owner of an instance, which stands behind the waiters', async ({
    world,
    holder,
    a,
  }) => {
    const owner = await world.holding(world.holder, ALL);
    const waiter = await world.queued(a, TWO);
    const next = { ...newOwner(holder, 'stock'), ...TWO };
    assertMatches(await holder.rotate(owner, next, LONG_MS, PATIENT), {
      released: true,
      next: { status: 'queued' },
    });
    await world.granted(a, waiter);
    await a.store.release(waiter);
    await world.granted(world.holder, next);
  });

  it('drops a waiter for permits of what is a lock by now', async ({ world, a, b }) => {
    const owner = await world.holding(world.holder, ALL);
    const waiter = await world.queued(a, ONE);
    const second = await world.queued(b, ONE);
    await world.leaseEnds(owner);
    const runner = newOwner(b.store, 'stock');
    const claim = {
      owner: runner,
      leaseMs: LONG_MS,
      claimTtlMs: LONG_MS,
      overlap: 'skip',
      takeOver: 'nothing',
    } as const;
    assert.equal((await b.jobs.claim({ resource: 'stock', tick: 'noon' }, claim)).status, 'granted');
    const found = { mode: 'exclusive', total: 1 };
    assertMatches(await b.store.acquire(second, LONG_MS, PATIENT), { status: 'mismatch', found });
    assertExcludes(await world.queue(), 'b');
    assertMatches(await a.store.acquire(waiter, LONG_MS, PATIENT), { status: 'mismatch', found });
    assertEquals(await world.queue(), []);
    await world.noOtherIsGranted();
  });

  it('is not free for the claim of a tick until the first of the leases ends', async ({ world, a, b }) => {
    await world.holding(a, ONE);
    const owner = newOwner(b.store, 'stock');
    const claim = { owner, leaseMs: LONG_MS, claimTtlMs: LONG_MS, overlap: 'skip', takeOver: 'nothing' } as const;
    assertEquals(await b.jobs.claim({ resource: 'stock', tick: 'noon' }, claim), { status: 'overlap' });
    assertEquals(await world.holders(), ['a']);
  });

  it('leaves nothing behind', async ({ subject, world, a, b }) => {
    const owners = [await world.holding(a, ONE), await world.holding(a, TWO)];
    // The second one decides on a fourth permit, which is the first one's.
    const waiters = [await world.queued(b, ONE), await world.queued(b, permits(1, 4, true))];
    await world.granted(b, waiters[0]!);
    await b.store.release(waiters[0]!);
    await world.granted(b, waiters[1]!);
    for (const owner of owners) await a.store.release(owner);
    await b.store.release(waiters[1]!);
    assert.equal(await subject.isEmpty(), true);
    await world.holding(a, ONE, SHORT_MS);
    await world.holding(a, TWO, SHORT_MS);
    await world.expire();
    assert.equal(await subject.isEmpty(), true);
  });
}
