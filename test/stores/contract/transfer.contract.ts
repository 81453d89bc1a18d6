import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  newOwner,
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
  PATIENT,
  permits,
  possible,
  READ,
  REENTRANT,
  SHORT_MS,
  type Subject,
  take,
  WRITE,
} from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

const TWO = permits(2, 3);

/** What every lock store keeps to: a lease that passes from one owner to the next. */
export function describeTransfer(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  describe.each(possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, TWO))('in $mode mode', (wish) => {
    it('makes the other one the owner in place of the first, with the same token', async () => {
      const first = { ...newOwner(a.store, 'stock'), ...wish };
      const second = { ...newOwner(b.store, 'stock'), ...wish };
      const token = await take(a.store, first);
      expect(await a.store.transfer(first, { to: second.id, leaseMs: 2 * LONG_MS })).toBe(token);
      const { mode, holders } = untimed(await holder.inspect('stock'));
      expect(mode).toBe(wish.mode);
      const of = { instanceId: 'b', fencingToken: token, ttlMs: expect.any(Number), depth: 1 };
      expect(holders).toEqual([wish.permits ? { ...of, permits: wish.permits.count } : of]);
      expect(holders[0]!.ttlMs).toBeGreaterThan(LONG_MS);
      expect(await a.store.verify(first)).toBe(false);
      expect(await a.store.renew(first, LONG_MS)).toBe(false);
      expect(await a.store.release(first)).toBe(false);
      expect(await take(b.store, second)).toBe(token);
      expect(await b.store.renew(second, LONG_MS)).toBe(true);
      expect(await b.store.release(second)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('lasts exactly as long as asked for, also where that is shorter', async () => {
      const first = await world.holding(a, wish);
      const { id: to } = newOwner(b.store, 'stock');
      await a.store.transfer(first, { to, leaseMs: LONG_MS / 2 });
      expect((await holder.inspect('stock')).ttlMs).toBeLessThanOrEqual(LONG_MS / 2);
    });

    it('changes nothing when it is sent again, but makes a lease longer', async () => {
      const first = await world.holding(a, wish);
      const { id: to } = newOwner(b.store, 'stock');
      const token = await a.store.transfer(first, { to, leaseMs: 2 * LONG_MS });
      const { holders } = untimed(await holder.inspect('stock'));
      for (const leaseMs of [3 * LONG_MS, SHORT_MS]) {
        expect(await a.store.transfer(first, { to, leaseMs })).toBe(token);
        const now = untimed(await holder.inspect('stock')).holders;
        expect(now).toEqual([{ ...holders[0], ttlMs: expect.any(Number) }]);
        expect(now[0]!.ttlMs).toBeGreaterThan(2 * LONG_MS);
      }
    });

    it('takes the token it is given: a later one of the same tick', async () => {
      const first = { ...newOwner(a.store, 'stock'), ...wish };
      const second = { ...newOwner(b.store, 'stock'), ...wish };
      const fencingToken = (await take(a.store, first)) + 7;
      expect(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, fencingToken })).toBe(fencingToken);
      expect(untimed(await holder.inspect('stock')).holders[0]).toMatchObject({ instanceId: 'b', fencingToken });
      expect(await take(b.store, second)).toBe(fencingToken);
    });

    it('is nothing where the first one is not the owner: a stranger, one who waits, or one who is dead', async () => {
      const { id: to } = newOwner(b.store, 'stock');
      const owner = await world.holding(world.holder, wish);
      const stranger = { ...newOwner(a.store, 'stock'), ...wish };
      expect(await a.store.transfer(stranger, { to, leaseMs: LONG_MS })).toBeNull();
      expect(await holder.verify(owner)).toBe(true);
      await world.leaseEnds(owner);
      expect(await holder.transfer(owner, { to, leaseMs: LONG_MS })).toBeNull();
      expect(await world.holders()).toEqual([]);
    });

    it('leaves those who wait where they are', async () => {
      const owner = await world.holding(world.holder, wish.permits ? permits(3, 3) : wish);
      const waiter = await world.queued(a, wish.permits ? wish : WRITE);
      const second = newOwner(b.store, 'stock');
      expect(await holder.transfer(owner, { to: second.id, leaseMs: LONG_MS })).not.toBeNull();
      await world.nobodyElseIsGranted();
      expect(await world.queue()).toEqual(['a']);
      expect(await a.store.transfer(waiter, { to: newOwner(b.store, 'stock').id, leaseMs: LONG_MS })).toBeNull();
      await b.store.release(second);
      await world.granted(a, waiter);
    });
  });

  it.each([REENTRANT, WRITE])('begins with depth 1 in $mode mode, whatever it was', async (wish) => {
    const first = await world.holding(a, wish);
    await a.store.setDepth(first, 4, LONG_MS);
    const second = newOwner(b.store, 'stock');
    await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS });
    expect(untimed(await holder.inspect('stock')).holders[0]?.depth).toBe(1);
    expect(await a.store.setDepth(first, 2, LONG_MS)).toBe(false);
    expect(await b.store.setDepth(second, 2, LONG_MS)).toBe(true);
  });

  it('passes one reader on and leaves the others as they are', async () => {
    const reader = await world.holding(a, READ, LONG_MS);
    const other = await world.holding(world.holder, READ, LONG_MS);
    const { id: to } = newOwner(b.store, 'stock');
    await a.store.transfer(reader, { to, leaseMs: 2 * LONG_MS });
    const { holders } = untimed(await holder.inspect('stock'));
    expect(holders.map(({ instanceId }) => instanceId)).toEqual(['b', 'holder']);
    expect(holders[1]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
    expect(await holder.verify(other)).toBe(true);
  });

  if (features.semaphores) {
    it('passes permits on, as many as there were', async () => {
      const first = await world.holding(a, TWO);
      await world.holding(world.holder, permits(1, 3));
      const second = newOwner(b.store, 'stock');
      await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, share: true });
      const state = untimed(await holder.inspect('stock'));
      expect(state.permits).toEqual({ total: 3, available: 0 });
      expect(state.holders).toMatchObject([{ instanceId: 'b', permits: 2 }, { permits: 1 }]);
      await b.store.release(second);
      expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 2 });
    });
  }

  describe('that is shared', () => {
    it('leaves a reader in place beside the next one; the resource is free when both have released', async () => {
      const first = newOwner(a.store, 'stock', 'read');
      const second = newOwner(b.store, 'stock', 'read');
      const token = await take(a.store, first);
      const terms = { to: second.id, leaseMs: 2 * LONG_MS, fencingToken: token + 1, share: true };
      for (const _sent of ['once', 'again']) expect(await a.store.transfer(first, terms)).toBe(token + 1);
      expect(untimed(await holder.inspect('stock')).holders).toMatchObject([
        { instanceId: 'a', fencingToken: token },
        { instanceId: 'b', fencingToken: token + 1 },
      ]);
      const writer = await world.queued(world.holder, WRITE);
      expect(await a.store.release(first)).toBe(true);
      await world.nobodyElseIsGranted();
      expect(await b.store.release(second)).toBe(true);
      await world.granted(world.holder, writer);
    });

    it.each([EXCLUSIVE, REENTRANT, WRITE])('is for readers only: refused in $mode mode', async (wish) => {
      const first = await world.holding(a, wish);
      const second = newOwner(b.store, 'stock');
      expect(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS, share: true })).toBeNull();
      expect(await world.holders()).toEqual(['a']);
      expect(await b.store.verify(second)).toBe(false);
    });
  });

  it('gives the token of one who holds already, and takes nothing from the first', async () => {
    const first = await world.holding(a, READ);
    const second = newOwner(b.store, 'stock', 'read');
    const token = await take(b.store, second);
    expect(await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS })).toBe(token);
    expect(await world.holders()).toEqual(['a', 'b']);
  });

  it('goes on to be the lock of the next one, whom those that wait come after', async () => {
    const first = await world.holding(a, EXCLUSIVE);
    const second = newOwner(b.store, 'stock');
    await a.store.transfer(first, { to: second.id, leaseMs: LONG_MS });
    const next = newOwner(b.store, 'stock');
    const waiter = await world.queued(a, EXCLUSIVE);
    const reply = await b.store.rotate(second, next, LONG_MS, PATIENT);
    expect(reply).toMatchObject({ released: true, next: { status: 'queued' } });
    await world.granted(a, waiter);
  });
}
