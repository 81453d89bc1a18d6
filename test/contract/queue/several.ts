import { ACQUIRE_MODES } from '../../../lib/core/api/lock-mode.js';
import assert from 'node:assert/strict';
import type { AcquireReply, LockOwner, LockStore, Queueing, SeveralReply } from '../../../lib/core/store/lock-store.js';
import { assertEquals, assertMatches } from '../asserts.js';
import type { QueueSuite } from '../queue-world.js';
import { enqueue, LONG_MS, newOwner, PATIENT, permits, SHORT_MS, take, untimed } from '../requests.js';
import type { StoreFeatures } from '../subject.js';

const LABEL = '{"group":"Orders.pay"}';

/** Owners for these resources, in this order. */
function ownersOf(store: LockStore, resources: readonly string[], mode: LockOwner['mode'] = 'exclusive'): LockOwner[] {
  return resources.map((resource) => newOwner(store, resource, mode));
}

/** The answer to the first one. */
function firstOf({ first }: SeveralReply): AcquireReply {
  if ('status' in first) return first;
  throw first;
}

/**
 * What every lock store keeps to that acquires several resources in one round trip: it grants, queues and writes what
 * single commands would. Tests of a store that does not do that pass without a command.
 */
export function describeSeveral(suite: QueueSuite, features: StoreFeatures): void {
  const several = suite.where(({ a }) => a.store.acquireSeveral !== undefined);
  const { it } = several.with(({ a: { store } }) => {
    /** Asks, and checks that each token it is told of is in the store, and that nothing else is held. */
    const acquire = async (
      owners: readonly LockOwner[],
      { queueing = PATIENT }: { queueing?: Queueing | 'none' } = {},
    ): Promise<SeveralReply> => {
      const reply = await store.acquireSeveral!(owners, LONG_MS, queueing === 'none' ? undefined : queueing);
      const { first } = reply;
      const token = 'status' in first && first.status === 'granted' ? first.fencingToken : undefined;
      for (const [index, owner] of owners.entries()) {
        const known = index === 0 ? token : reply.laterTokens[index - 1];
        assert.equal(await store.verify(owner), known !== undefined, `${owner.resource} is held as the reply says`);
        if (known === undefined) continue;
        const { holders } = await store.inspect(owner.resource);
        assert.equal(
          holders.some(({ fencingToken }) => fencingToken === known),
          true,
        );
      }
      return reply;
    };
    return { acquire };
  });

  for (const mode of ACQUIRE_MODES) {
    it.onEveryServer(
      `grants all that are free, and writes what single commands write, in mode ${mode}`,
      async ({ acquire, a, holder, subject }) => {
        const owners = ownersOf(a.store, ['a', 'b', 'c'], mode).map((owner) => ({ ...owner, label: LABEL }));
        const reply = await acquire(owners);
        assert.equal(firstOf(reply).status, 'granted');
        assert.equal(reply.laterTokens.filter((token) => typeof token === 'number').length, 2);
        const single = { ...newOwner(a.store, 'single', mode), label: LABEL };
        await take(a.store, single);
        const comparable = async (resource: string): Promise<object> => {
          const state = untimed(await holder.inspect(resource));
          const holders = state.holders.map(({ fencingToken: _token, ttlMs: _ttl, ...rest }) => rest);
          return { ...state, resource: '', ttlMs: 0, holders };
        };
        for (const { resource } of owners) assertEquals(await comparable(resource), await comparable('single'));
        for (const owner of [...owners, single]) {
          assert.equal(await a.store.renew(owner, LONG_MS), true);
          assert.equal(await a.store.release(owner), true);
        }
        assert.equal(await subject.isEmpty(), true);
      },
    );
  }

  it.onEveryServer('gives each of them the lease that was asked for', async ({ a, world }) => {
    const owners = ownersOf(a.store, ['a', 'b']);
    const reply = await a.store.acquireSeveral!(owners, SHORT_MS, PATIENT);
    assert.equal(firstOf(reply).status, 'granted');
    assert.equal(typeof reply.laterTokens[0], 'number');
    await world.expire();
    for (const owner of owners) assert.equal(await a.store.verify(owner), false);
  });

  it.onEveryServer('answers a command that is sent again with the same tokens', async ({ acquire, a }) => {
    const owners = ownersOf(a.store, ['a', 'b', 'c']);
    assertEquals(await acquire(owners), await acquire(owners));
  });

  it.onEveryServer(
    'joins the queue of the first one that is taken, and holds none behind it for long',
    async ({ a, world, holder, subject }) => {
      const held = await world.held('a');
      const owners = ownersOf(a.store, ['a', 'b', 'c']);
      const reply = await a.store.acquireSeveral!(owners, LONG_MS, PATIENT);
      assertMatches(firstOf(reply), { status: 'queued', seen: { holders: [{ instanceId: 'holder' }] } });
      // On a cluster, those of other slots may have been granted: the caller releases them.
      for (const [index, token] of reply.laterTokens.entries()) {
        if (token !== undefined) assert.equal(await a.store.release(owners[index + 1]!), true);
      }
      assertEquals([await world.queue('a'), await world.queue('b'), await world.queue('c')], [['a'], [], []]);
      assertEquals([await world.holders('b'), await world.holders('c')], [[], []]);
      await holder.release(held);
      await world.granted(a, owners[0]!);
      await a.store.release(owners[0]!);
      assert.equal(await subject.isEmpty(), true);
    },
  );

  it.onEveryServer('leaves the queue alone where it is not to wait', async ({ acquire, a, world }) => {
    await world.held('a');
    const reply = await acquire(ownersOf(a.store, ['a', 'b']), { queueing: 'none' });
    assert.equal(firstOf(reply).status, 'busy');
    assertEquals([await world.queue('a'), await world.holders('b')], [[], []]);
  });

  it.onEveryServer('heeds the limit of the queue', async ({ a, b, world }) => {
    await world.held('a');
    await world.waiting(b, 'a');
    const reply = await a.store.acquireSeveral!(ownersOf(a.store, ['a', 'b']), LONG_MS, { ...PATIENT, maxWaiters: 1 });
    assert.equal(firstOf(reply).status, 'full');
    assertEquals(await world.queue('a'), ['b']);
  });

  it.onEveryServer('stops at one that is taken, without a place in its queue', async ({ acquire, a, world }) => {
    const held = await world.held('b');
    const reply = await acquire(ownersOf(a.store, ['a', 'b']));
    assert.equal(firstOf(reply).status, 'granted');
    assertEquals(reply.laterTokens[0], undefined);
    assertEquals([await world.holders('b'), await world.queue('b')], [['holder'], []]);
    assert.equal(await world.holder.store.verify(held), true);
  });

  it.onEveryServer('grants none before those that wait for it', async ({ acquire, a, b, world }) => {
    const held = await world.held('b');
    const waiting = newOwner(b.store, 'b');
    await enqueue(b.store, waiting);
    await world.leaseEnds(held);
    const reply = await acquire(ownersOf(a.store, ['a', 'b']));
    assertEquals([firstOf(reply).status, reply.laterTokens[0]], ['granted', undefined]);
    await world.granted(b, waiting);
    assertEquals(await world.holders('b'), ['b']);
  });

  it.onEveryServer(
    'reads beside others, but not before a writer that waits',
    async ({ acquire, a, b, holder, world }) => {
      for (const resource of ['a', 'b', 'c']) await take(holder, newOwner(holder, resource, 'read'));
      await enqueue(b.store, newOwner(b.store, 'c', 'write'));
      const reply = await acquire(ownersOf(a.store, ['a', 'b', 'c'], 'read'));
      assert.equal(firstOf(reply).status, 'granted');
      assertEquals([typeof reply.laterTokens[0], reply.laterTokens[1]], ['number', undefined]);
      assertEquals([await world.holders('b'), await world.holders('c')], [['holder', 'a'], ['holder']]);
    },
  );

  if (features.semaphores) {
    it.onEveryServer(
      'tells of a semaphore in the place of the first one, and stops at a later one',
      async ({ acquire, a, holder }) => {
        await take(holder, { ...newOwner(holder, 'a'), ...permits(1, 3) });
        await take(holder, { ...newOwner(holder, 'c'), ...permits(1, 3) });
        const mismatch = await a.store.acquireSeveral!(ownersOf(a.store, ['a']), LONG_MS, PATIENT);
        assertMatches(firstOf(mismatch), { status: 'mismatch', found: { mode: 'semaphore', total: 3 } });
        const reply = await acquire(ownersOf(a.store, ['b', 'c']));
        assertEquals([firstOf(reply).status, reply.laterTokens[0]], ['granted', undefined]);
      },
    );
  }

  it.onEveryServer('each is passed on to its own waiters', async ({ acquire, a, b, world }) => {
    const owners = ownersOf(a.store, ['a', 'b']);
    await acquire(owners);
    const waiters = ownersOf(b.store, ['a', 'b']);
    for (const waiter of waiters) await enqueue(b.store, waiter);
    for (const owner of owners) await a.store.release(owner);
    await world.grantedInAnyOrder(b, ...waiters);
    await world.noOtherIsGranted();
    assertMatches(await a.store.acquire(newOwner(a.store, 'b'), LONG_MS), { status: 'busy' });
  });
}
