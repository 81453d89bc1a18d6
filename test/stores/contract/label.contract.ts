import { HANDED_ON } from '../../../lib/core/api/label.js';
import type { LockOwner, LockState, LockStore } from '../../../lib/core/store/lock-store.js';
import { untimed } from '../../support/expect/untimed.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  PATIENT,
  permits,
  possible,
  READ,
  REENTRANT,
  SHORT_MS,
  type Subject,
  take,
  type Wish,
  WRITE,
} from '../subjects/subject.js';

const PAY = '{"group":"Orders.pay","request":"7f } {"}';
const REFUND = '{"group":"Orders.refund"}';
const LABEL = { group: 'Orders.pay', request: '7f } {' };

/** What every lock store keeps to: a label stands beside what its owner holds or waits for, and nowhere else. */
export function describeLabels(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ world, holder, a, b } = here));

  const owned = (store: LockStore, wish: Wish, label?: string): LockOwner => {
    const owner = { ...newOwner(store, 'stock'), ...wish };
    return label === undefined ? owner : { ...owner, label };
  };
  const holders = async (): Promise<LockState['holders']> => (await a.store.inspect('stock')).holders;
  const labels = async (): Promise<unknown[]> => (await holders()).map(({ label }) => label);
  const seenBy = async (store: LockStore, wish = EXCLUSIVE): Promise<unknown[]> => {
    const reply = await store.acquire(owned(store, wish), LONG_MS);
    return ('seen' in reply ? (reply.seen?.list ?? []) : []).map(({ label }) => label);
  };
  const everyMode = possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, permits(2, 3));

  describe.each(everyMode)('of a holder in mode $mode', (wish) => {
    /** What cannot share it. */
    const other = wish.permits ? permits(3, 3) : WRITE;

    it('is shown, and gone with the lock', async () => {
      const owner = owned(holder, wish, PAY);
      await take(holder, owner);
      expect(await labels()).toEqual([LABEL]);
      expect(await seenBy(a.store, other)).toEqual([LABEL]);
      await holder.release(owner);
      expect(await holders()).toEqual([]);
      await take(holder, owned(holder, wish));
      expect(await labels()).toEqual([undefined]);
      expect((await holders())[0]).not.toHaveProperty('label');
    });

    it('stays with the lease when that is renewed, and when its command is sent again', async () => {
      const owner = owned(holder, wish, PAY);
      await take(holder, owner);
      expect(await holder.renew(owner, 2 * LONG_MS)).toBe(true);
      expect(await holder.renew(owner, LONG_MS, true)).toBe(true);
      await take(holder, owner);
      await holder.raiseToken(owner, (await holders())[0]!.fencingToken + 32);
      await holder.setDepth(owner, 2, LONG_MS);
      expect(await labels()).toEqual([LABEL]);
    });

    it('can be changed, and removed, by its owner alone', async () => {
      const owner = owned(holder, wish);
      await take(holder, owner);
      const [before] = untimed(await holder.inspect('stock')).holders;
      expect(await holder.label(owner, PAY)).toBe(true);
      expect(await labels()).toEqual([LABEL]);
      expect(await holder.label(owner, REFUND)).toBe(true);
      expect(await labels()).toEqual([{ group: 'Orders.refund' }]);
      expect(await holder.label(owned(holder, wish), PAY)).toBe(false);
      expect(await labels()).toEqual([{ group: 'Orders.refund' }]);
      expect(await holder.label(owner, HANDED_ON)).toBe(true);
      expect(await holders()).toMatchObject([{ isHandedOn: true }]);
      expect(await labels()).toEqual([undefined]);
      expect(await holder.label(owner, undefined)).toBe(true);
      const [after] = untimed(await holder.inspect('stock')).holders;
      expect({ ...after, ttlMs: 0 }).toEqual({ ...before, ttlMs: 0 });
      expect(after!.ttlMs).toBeLessThanOrEqual(before!.ttlMs);
      expect(await holder.verify(owner)).toBe(true);
    });

    it('comes with a grant that another process makes', async () => {
      const owner = owned(holder, EXCLUSIVE.mode === wish.mode ? wish : other, REFUND);
      await take(holder, owner);
      const waiter = owned(a.store, wish, PAY);
      await a.store.acquire(waiter, LONG_MS, PATIENT);
      expect((await b.store.inspect('stock')).waiters).toMatchObject([{ instanceId: 'a', label: LABEL }]);
      await holder.release(owner);
      await world.granted(a, waiter);
      expect(await labels()).toEqual([LABEL]);
      expect(await seenBy(b.store, other)).toEqual([LABEL]);
      expect(await a.store.release(waiter)).toBe(true);
      expect(await holders()).toEqual([]);
    });

    it('comes with a rotation', async () => {
      const owner = owned(a.store, wish, REFUND);
      await take(a.store, owner);
      const next = owned(a.store, wish, PAY);
      expect(await a.store.rotate(owner, next, LONG_MS, PATIENT)).toMatchObject({ next: { status: 'granted' } });
      expect(await labels()).toEqual([LABEL]);
    });

    it('goes with a transfer, unless that brings another one', async () => {
      const owner = owned(holder, wish, PAY);
      await take(holder, owner);
      const heirs = [1, 2, 3].map(() => newOwner(a.store, 'stock').id) as [string, string, string];
      const to = (id: string, label?: string) => ({ to: id, leaseMs: LONG_MS, ...(label !== undefined && { label }) });
      expect(await holder.transfer(owner, to(heirs[0]))).not.toBeNull();
      expect(await labels()).toEqual([LABEL]);
      expect(await holder.transfer({ ...owner, id: heirs[0] }, to(heirs[1], REFUND))).not.toBeNull();
      expect(await labels()).toEqual([{ group: 'Orders.refund' }]);
      expect(await holder.transfer({ ...owner, id: heirs[1] }, to(heirs[2], ''))).not.toBeNull();
      expect(await labels()).toEqual([undefined]);
    });

    it('still says which work keeps the resource taken until its minimum is over', async () => {
      const owner = owned(holder, wish, PAY);
      await take(holder, owner);
      expect(await holder.retain(owner, { leftMs: LONG_MS })).toBe(true);
      expect(await labels()).toEqual([LABEL]);
      expect(await holder.label(owner, REFUND)).toBe(false);
      expect(await labels()).toEqual([LABEL]);
    });
  });

  it('of a waiter changes when it asks with another one, and its place stays', async () => {
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
    expect(await waiting()).toMatchObject([{ label: { group: 'Orders.refund' } }, { instanceId: 'b' }]);
    await ask({ ...waiter, label: undefined });
    expect((await waiting())[0]).not.toHaveProperty('label');
    if (features.oneQueue) expect(places).toEqual([1, 1, 1]);
    await holder.release(owner);
    await world.granted(a, waiter);
    expect(await labels()).toEqual([undefined]);
  });

  it('of a writer is that of the reader it becomes', async () => {
    const owner = owned(holder, WRITE, PAY);
    await take(holder, owner);
    expect(await holder.downgrade(owner, LONG_MS)).toBe(true);
    expect(await labels()).toEqual([LABEL]);
    expect(await seenBy(a.store, WRITE)).toEqual([LABEL]);
  });

  it('of a reader goes to the one with whom it shares, and to none of the others', async () => {
    const owner = owned(holder, READ, PAY);
    await take(holder, owner);
    await take(b.store, owned(b.store, READ));
    const heir = newOwner(a.store, 'stock').id;
    await holder.transfer(owner, { to: heir, leaseMs: LONG_MS, share: true, label: REFUND });
    const shown = await labels();
    expect(shown).toHaveLength(3);
    expect(shown).toEqual(expect.arrayContaining([LABEL, { group: 'Orders.refund' }, undefined]));
    expect(await b.store.release({ ...owner, id: heir })).toBe(true);
    const left = await labels();
    expect(left).toHaveLength(2);
    expect(left).toEqual(expect.arrayContaining([LABEL, undefined]));
  });

  it('is gone with a lease that is forced to end, and with one that ends by itself', async () => {
    await take(holder, owned(holder, EXCLUSIVE, PAY));
    await a.store.forceRelease('stock', (await holders())[0]!.fencingToken);
    expect(await holders()).toEqual([]);
    await take(holder, owned(holder, REENTRANT, PAY), SHORT_MS);
    await world.expire();
    await take(a.store, owned(a.store, REENTRANT));
    expect(await labels()).toEqual([undefined]);
  });

  if (features.semaphores) {
    it('of a holder of permits stays when it releases some of them', async () => {
      const owner = owned(holder, permits(3, 3), PAY);
      await take(holder, owner);
      expect(await holder.lowerPermits(owner, 1)).toBe(true);
      expect(await holders()).toMatchObject([{ permits: 1, label: LABEL }]);
      await take(a.store, owned(a.store, permits(2, 3), REFUND));
      expect(await labels()).toEqual([LABEL, { group: 'Orders.refund' }]);
      expect(await seenBy(b.store, permits(1, 3))).toEqual([LABEL, { group: 'Orders.refund' }]);
    });
  }

  if (features.oneQueue) {
    it('or none: the answer tells the place in line', async () => {
      await world.held();
      const ask = async (peer: Peer, owner: LockOwner): Promise<unknown> => {
        const reply = await peer.store.acquire(owner, LONG_MS, PATIENT);
        return 'place' in reply && reply.place;
      };
      const [first, second, third] = [owned(a.store, EXCLUSIVE), owned(b.store, READ, PAY), owned(a.store, WRITE)];
      expect(await ask(a, first)).toBe(1);
      expect(await ask(b, second)).toBe(2);
      expect(await ask(a, third)).toBe(3);
      expect(await ask(b, second)).toBe(2);
      await a.store.release(first);
      expect(await ask(a, third)).toBe(2);
      expect(await ask(b, second)).toBe(1);
    });
  }
}
