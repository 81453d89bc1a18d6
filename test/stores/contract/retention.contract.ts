import type { LockOwner, LockStore } from '../../../lib/core/store/lock-store.js';
import { eventually } from '../../support/expect/eventually.js';
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
  WRITE,
} from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

const TWO = permits(2, 3);

/** A minimum of this length, none of which is over as far as the process knows. */
function atLeast(minHoldMs: number) {
  return { minHoldMs, leftMs: minHoldMs };
}

/** What every lock store keeps to: a resource that stays taken after its holder has released it. */
export function describeRetention(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  const ttlMs = async (): Promise<number> => (await holder.inspect('stock')).ttlMs;
  const asksAgain = (owner: LockOwner) => a.store.acquire(owner, LONG_MS, PATIENT);

  describe.each(possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, TWO))('in $mode mode', (wish) => {
    /** What no other holder goes with. */
    const whole = wish.permits ? permits(3, 3) : WRITE;

    it('stays taken: no owner holds it, and the state shows by which instance', async () => {
      const owner = { ...newOwner(a.store, 'stock'), ...wish };
      const fencingToken = await take(a.store, owner);
      const before = untimed(await holder.inspect('stock'));
      expect(await a.store.retain(owner, atLeast(LONG_MS / 2))).toBe(true);
      const state = untimed(await holder.inspect('stock'));
      const [kept] = state.holders;
      expect(state).toEqual({ ...before, ttlMs: expect.any(Number), holders: [{ ...kept, instanceId: 'a' }] });
      expect(kept).toMatchObject({ fencingToken, depth: 1 });
      expect(kept!.ttlMs).toBeLessThanOrEqual(LONG_MS / 2);
      expect(kept!.ttlMs).toBeGreaterThan(LONG_MS / 4);
      expect(await a.store.verify(owner)).toBe(false);
      expect(await a.store.renew(owner, LONG_MS)).toBe(false);
      expect(await a.store.setDepth(owner, 2, LONG_MS)).toBe(false);
      expect(await a.store.transfer(owner, { to: newOwner(b.store, 'stock').id, leaseMs: LONG_MS })).toBe(null);
      expect(await a.store.release(owner)).toBe(false);
      // A node of a quorum may not have known it yet when the state was looked at first.
      expect(untimed(await holder.inspect('stock')).holders).toMatchObject([{ ...kept, ttlMs: expect.any(Number) }]);
    });

    it('lasts longer than the lease did, where the minimum does', async () => {
      const owner = await world.holding(a, wish, SHORT_MS);
      await a.store.retain(owner, atLeast(LONG_MS));
      expect(await ttlMs()).toBeGreaterThan(LONG_MS / 2);
    });

    it('is free when the minimum is over: to the first in the queue, and to no newcomer before', async () => {
      const owner = await world.holding(a, wish);
      const next = await world.queued(a, whole);
      await a.store.retain(owner, atLeast(SHORT_MS));
      expect(await ttlMs()).toBeLessThanOrEqual(SHORT_MS);
      await subject.pass(2 * SHORT_MS);
      expect(untimed(await holder.inspect('stock')).holders).toEqual([]);
      expect((await asksAgain(next)).status).toBe('granted');
      await a.store.release(next);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('is a release where the minimum is over', async () => {
      const owner = await world.holding(a, wish);
      const next = await world.queued(b, whole);
      expect(await a.store.retain(owner, { minHoldMs: SHORT_MS, leftMs: 0 })).toBe(true);
      await world.granted(b, next);
      await b.store.release(next);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('lasts for as long as the process says, where it counts from no grant', async () => {
      const owner = await world.holding(a, wish);
      await a.store.retain(owner, { leftMs: LONG_MS / 2 });
      expect(await ttlMs()).toBeLessThanOrEqual(LONG_MS / 2);
      expect(await ttlMs()).toBeGreaterThan(LONG_MS / 4);
    });

    it('changes nothing when it is sent again', async () => {
      const owner = await world.holding(a, wish);
      await a.store.retain(owner, atLeast(LONG_MS / 2));
      const { holders } = untimed(await holder.inspect('stock'));
      expect(await a.store.retain(owner, atLeast(LONG_MS))).toBe(true);
      expect(await a.store.retain(owner, { leftMs: LONG_MS })).toBe(true);
      const [kept] = untimed(await holder.inspect('stock')).holders;
      expect(kept).toEqual({ ...holders[0], ttlMs: expect.any(Number) });
      expect(kept!.ttlMs).toBeLessThanOrEqual(LONG_MS / 2);
    });

    it('is nothing where the owner does not hold it; one that waits leaves the queue', async () => {
      await world.holding(a, wish);
      const waiter = await world.queued(b, whole);
      const { holders } = untimed(await holder.inspect('stock'));
      expect(await b.store.retain(waiter, atLeast(LONG_MS))).toBe(false);
      expect(await b.store.retain(newOwner(b.store, 'stock'), atLeast(LONG_MS))).toBe(false);
      expect(await world.queue()).toEqual([]);
      expect(untimed(await holder.inspect('stock')).holders).toEqual([{ ...holders[0], ttlMs: expect.any(Number) }]);
    });

    it('is ended by an operator', async () => {
      const owner = await world.holding(a, wish);
      await a.store.retain(owner, atLeast(LONG_MS));
      const { holders } = untimed(await holder.inspect('stock'));
      expect(await holder.forceRelease('stock', holders[0]!.fencingToken)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('tells the first waiter, and no other, when it is free', async () => {
      const owner = await world.holding(a, wish);
      const first = await world.queued(b, whole, { sentAt: 70.9 });
      await world.queued(a, whole);
      await a.store.retain(owner, atLeast(LONG_MS / 2));
      await eventually(() => expect(b.grants.notices).not.toEqual([]));
      const [notice] = b.grants.notices;
      expect(notice).toEqual({ resource: 'stock', owner: first.id, sentAt: 70, leftMs: expect.any(Number) });
      expect(notice!.leftMs).toBeLessThanOrEqual(LONG_MS / 2);
      expect(notice!.leftMs).toBeGreaterThan(LONG_MS / 4);
      expect(a.grants.notices).toEqual([]);
      await world.nobodyElseIsGranted();
    });
  });

  it('counts from the grant to the first owner, also after a transfer', async () => {
    const owner = await world.holding(a, EXCLUSIVE);
    const next = newOwner(b.store, 'stock');
    await subject.pass(SHORT_MS);
    await a.store.transfer(owner, { to: next.id, leaseMs: LONG_MS });
    await b.store.retain(next, { minHoldMs: LONG_MS, leftMs: LONG_MS });
    expect(await ttlMs()).toBeLessThanOrEqual(LONG_MS - SHORT_MS);
    expect(await ttlMs()).toBeGreaterThan(LONG_MS / 2);
  });

  it('keeps the share of one reader: others may join, and a writer waits', async () => {
    const owner = await world.holding(a, READ);
    const other = await world.holding(b, READ);
    await a.store.retain(owner, atLeast(LONG_MS));
    expect((await world.ask(b, READ)).status).toBe('granted');
    await b.store.release(other);
    expect((await world.ask(b, WRITE)).status).toBe('busy');
    expect(await world.holders()).toEqual(['a', 'b']);
  });

  it('keeps a writer that became a reader as a reader', async () => {
    const owner = await world.holding(a, WRITE);
    await a.store.downgrade(owner, LONG_MS);
    await a.store.retain({ ...owner, mode: 'read' }, atLeast(LONG_MS));
    expect((await world.ask(b, READ)).status).toBe('granted');
    expect((await world.ask(b, WRITE)).status).toBe('busy');
  });

  it('lets no late command of the old owner take it again', async () => {
    const owner = await world.holding(a, EXCLUSIVE);
    await a.store.retain(owner, atLeast(LONG_MS));
    expect((await a.store.acquire(owner, LONG_MS)).status).toBe('busy');
    expect((await asksAgain(owner)).status).toBe('queued');
    // Its sender takes it back, by either command.
    expect(await a.store.retain(owner, atLeast(LONG_MS))).toBe(true);
    expect(await world.queue()).toEqual([]);
    expect(await world.holders()).toEqual(['a']);
  });

  if (!features.semaphores) return;

  it('keeps the permits of one holder, and no others', async () => {
    const owner = await world.holding(a, permits(2, 4));
    await world.holding(b, permits(1, 4));
    await a.store.retain(owner, atLeast(SHORT_MS));
    expect((await holder.inspect('stock')).permits).toEqual({ total: 4, available: 1 });
    expect((await world.ask(b, permits(2, 4))).status).toBe('busy');
    await subject.pass(2 * SHORT_MS);
    expect((await holder.inspect('stock')).permits).toEqual({ total: 4, available: 3 });
    expect((await world.ask(b, permits(3, 4))).status).toBe('granted');
  });

  it('keeps one share of an owner that a late command has granted another', async () => {
    const owner = await world.holding(a, permits(1, 3));
    await a.store.retain(owner, atLeast(LONG_MS));
    expect((await a.store.acquire(owner, LONG_MS)).status).toBe('granted');
    expect((await holder.inspect('stock')).permits!.available).toBe(1);
    expect(await a.store.retain(owner, atLeast(LONG_MS))).toBe(true);
    expect((await holder.inspect('stock')).permits!.available).toBe(2);
  });
}
