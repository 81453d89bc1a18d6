import assert from 'node:assert/strict';
import { HANDED_ON } from '../../../lib/kernel/api/holder.js';
import type { LockOwner, LockStore, QueuedPlace } from '../../../lib/kernel/store/lock-store.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import { assertAtMost, assertEquals, assertLacks, assertMatches } from '../asserts.js';
import type { Peer, QueueSuite } from '../queue-world.js';
import {
  everyMode,
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  PATIENT,
  permits,
  READ,
  REENTRANT,
  SHORT_MS,
  take,
  untimed,
  type Wish,
  WRITE,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';

const PAY = '{"group":"Orders.pay","request":"7f } {"}';
const REFUND = '{"group":"Orders.refund"}';
const LABEL = { group: 'Orders.pay', request: '7f } {' };

/** Contract of lock stores: a label is shown with the leases and places of its owner, and nowhere else. */
export function describeLabels(suite: QueueSuite, features: StoreFeatures): void {
  const owned = (store: LockStore, wish: Wish, label?: string): LockOwner => {
    const owner = { ...newOwner(store, 'stock'), ...wish };
    return label === undefined ? owner : { ...owner, label };
  };
  const { describe, it } = suite.with(({ a }) => {
    const holders = async (): Promise<LockState['holders']> => (await a.store.inspect('stock')).holders;
    const labels = async (): Promise<unknown[]> => (await holders()).map(({ label }) => label);
    return { holders, labels };
  });
  const seenBy = async (store: LockStore, wish = EXCLUSIVE): Promise<unknown[]> => {
    const reply = await store.acquire(owned(store, wish), LONG_MS);
    return ('seen' in reply ? (reply.seen?.holders ?? []) : []).map(({ label }) => label);
  };
  const wishes = everyMode(features);

  for (const wish of wishes) {
    describe(`of a holder in mode ${wish.mode}`, () => {
      /** Excludes the wish. */
      const other = wish.permits ? permits(3, 3) : WRITE;

      it('is shown, and gone with the lock', async ({ holder, a, labels, holders }) => {
        const owner = owned(holder, wish, PAY);
        await take(holder, owner);
        assertEquals(await labels(), [LABEL]);
        assertEquals(await seenBy(a.store, other), [LABEL]);
        await holder.release(owner);
        assertEquals(await holders(), []);
        await take(holder, owned(holder, wish));
        assertEquals(await labels(), [undefined]);
        assertLacks((await holders())[0], 'label');
      });

      it('stays with the lease when that is renewed, and when its command is sent again', async ({
        holder,
        holders,
        labels,
      }) => {
        const owner = owned(holder, wish, PAY);
        await take(holder, owner);
        assert.equal(await holder.renew(owner, 2 * LONG_MS), true);
        assert.equal(await holder.renew(owner, LONG_MS, true), true);
        await take(holder, owner);
        await holder.raiseToken(owner, (await holders())[0]!.fencingToken + 64);
        await holder.setDepth(owner, 2, LONG_MS);
        assertEquals(await labels(), [LABEL]);
      });

      it.onEveryServer('can be changed, and removed, by its owner alone', async ({ holder, labels, holders }) => {
        const owner = owned(holder, wish);
        await take(holder, owner);
        const [before] = untimed(await holder.inspect('stock')).holders;
        assert.equal(await holder.label(owner, PAY), true);
        assertEquals(await labels(), [LABEL]);
        assert.equal(await holder.label(owner, REFUND), true);
        assertEquals(await labels(), [{ group: 'Orders.refund' }]);
        assert.equal(await holder.label(owned(holder, wish), PAY), false);
        assertEquals(await labels(), [{ group: 'Orders.refund' }]);
        assert.equal(await holder.label(owner, HANDED_ON), true);
        assertMatches(await holders(), [{ isHandedOn: true }]);
        assertEquals(await labels(), [undefined]);
        assert.equal(await holder.label(owner, undefined), true);
        const [after] = untimed(await holder.inspect('stock')).holders;
        assertEquals({ ...after, ttlMs: 0 }, { ...before, ttlMs: 0 });
        assertAtMost(after!.ttlMs, before!.ttlMs);
        assert.equal(await holder.verify(owner), true);
      });

      it('comes with a grant that another process makes', async ({ world, holder, a, b, labels, holders }) => {
        const owner = owned(holder, EXCLUSIVE.mode === wish.mode ? wish : other, REFUND);
        await take(holder, owner);
        const waiter = owned(a.store, wish, PAY);
        await a.store.acquire(waiter, LONG_MS, PATIENT);
        assertMatches((await b.store.inspect('stock')).waiters, [{ instanceId: 'a', label: LABEL }]);
        await holder.release(owner);
        await world.granted(a, waiter);
        assertEquals(await labels(), [LABEL]);
        assertEquals(await seenBy(b.store, other), [LABEL]);
        assert.equal(await a.store.release(waiter), true);
        assertEquals(await holders(), []);
      });

      it('comes with a rotation', async ({ a, labels }) => {
        const owner = owned(a.store, wish, REFUND);
        await take(a.store, owner);
        const next = owned(a.store, wish, PAY);
        assertMatches(await a.store.rotate(owner, next, LONG_MS, PATIENT), { next: { status: 'granted' } });
        assertEquals(await labels(), [LABEL]);
      });

      it('comes with a rotation behind a waiter, for both of them', async ({ holder, a, b }) => {
        const owner = owned(holder, EXCLUSIVE.mode === wish.mode ? wish : other, REFUND);
        await take(holder, owner);
        const waiter = owned(a.store, wish, PAY);
        await a.store.acquire(waiter, LONG_MS, PATIENT);
        const next = owned(holder, other, REFUND);
        const { released, next: reply } = await holder.rotate(owner, next, LONG_MS, PATIENT);
        assert.equal(released, true);
        assertMatches(reply, { status: 'queued', seen: { holders: [{ instanceId: 'a', label: LABEL }] } });
        const { place } = reply as QueuedPlace;
        assertMatches(await holder.acquire(next, LONG_MS, PATIENT), { status: 'queued', place });
        assertMatches((await b.store.inspect('stock')).waiters, [{ label: { group: 'Orders.refund' } }]);
        assert.equal(await a.store.release(waiter), true);
      });

      it('still says which work keeps the resource taken until its minimum is over', async ({ holder, labels }) => {
        const owner = owned(holder, wish, PAY);
        await take(holder, owner);
        assert.equal(await holder.retain(owner, { leftMs: LONG_MS }), true);
        assertEquals(await labels(), [LABEL]);
        assert.equal(await holder.label(owner, REFUND), false);
        assertEquals(await labels(), [LABEL]);
      });
    });
  }

  it('of a waiter changes when it asks with another one, and its place stays', async ({
    world,
    holder,
    a,
    b,
    labels,
  }) => {
    const owner = await world.held();
    const waiter = owned(a.store, EXCLUSIVE, PAY);
    const places: unknown[] = [];
    const ask = async (asking: LockOwner): Promise<void> => {
      const reply = await a.store.acquire(asking, LONG_MS, PATIENT);
      places.push('place' in reply && reply.place);
    };
    await ask(waiter);
    await b.store.acquire(owned(b.store, EXCLUSIVE), LONG_MS, PATIENT);
    await ask({ ...waiter, label: REFUND });
    const waiting = async () => (await a.store.inspect('stock')).waiters;
    assertMatches(await waiting(), [{ label: { group: 'Orders.refund' } }, { instanceId: 'b' }]);
    await ask({ ...waiter, label: undefined });
    assertLacks((await waiting())[0], 'label');
    if (features.oneQueue) assertEquals(places, [1, 1, 1]);
    await holder.release(owner);
    await world.granted(a, waiter);
    assertEquals(await labels(), [undefined]);
  });

  it('of a writer stays when it becomes a reader', async ({ holder, a, labels }) => {
    const owner = owned(holder, WRITE, PAY);
    await take(holder, owner);
    assert.equal(await holder.downgrade(owner, LONG_MS), true);
    assertEquals(await labels(), [LABEL]);
    assertEquals(await seenBy(a.store, WRITE), [LABEL]);
  });

  it('is gone with a lease that is forced to end, and with one that ends by itself', async ({
    world,
    holder,
    a,
    holders,
    labels,
  }) => {
    await take(holder, owned(holder, EXCLUSIVE, PAY));
    await a.store.forceRelease('stock', (await holders())[0]!.fencingToken);
    assertEquals(await holders(), []);
    await take(holder, owned(holder, REENTRANT, PAY), SHORT_MS);
    await world.expire();
    await take(a.store, owned(a.store, REENTRANT));
    assertEquals(await labels(), [undefined]);
  });

  if (features.semaphores) {
    it('of a holder of permits stays when it releases some of them', async ({ holder, a, b, holders, labels }) => {
      const owner = owned(holder, permits(3, 3), PAY);
      await take(holder, owner);
      assert.equal(await holder.lowerPermits(owner, 1), true);
      assertMatches(await holders(), [{ permits: 1, label: LABEL }]);
      await take(a.store, owned(a.store, permits(2, 3), REFUND));
      assertEquals(await labels(), [LABEL, { group: 'Orders.refund' }]);
      assertEquals(await seenBy(b.store, permits(1, 3)), [LABEL, { group: 'Orders.refund' }]);
    });
  }

  if (features.oneQueue) {
    it('or none: the answer tells the place in line', async ({ world, a, b }) => {
      await world.held();
      const ask = async (peer: Peer, owner: LockOwner): Promise<unknown> => {
        const reply = await peer.store.acquire(owner, LONG_MS, PATIENT);
        return 'place' in reply && reply.place;
      };
      const [first, second, third] = [owned(a.store, EXCLUSIVE), owned(b.store, READ, PAY), owned(a.store, WRITE)];
      assert.equal(await ask(a, first), 1);
      assert.equal(await ask(b, second), 2);
      assert.equal(await ask(a, third), 3);
      assert.equal(await ask(b, second), 2);
      await a.store.release(first);
      assert.equal(await ask(a, third), 2);
      assert.equal(await ask(b, second), 1);
    });
  }
}
