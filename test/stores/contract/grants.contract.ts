import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  enqueue,
  EVERYTHING,
  EXCLUSIVE,
  expectSameToken,
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

/** What every lock store keeps to: who is granted a resource that is released. */
export function describeGrants(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  it('go to the first in the queue, and to nobody else', async () => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    expect(await holder.release(owner)).toBe(true);
    expect((await a.grants.next()).owner).toBe(first.id);
    expect(await a.store.verify(first)).toBe(true);
    expect(await world.queue()).toEqual(['b']);
    expect(await world.grantBeforeNow(a)).toBeUndefined();
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });

  it('go round in the order in which the waiters came, whatever their instance', async () => {
    let owner = await world.held();
    let store = holder;
    const line = [a, b, b, a, b].map((peer) => ({ peer, waiter: newOwner(peer.store, 'stock') }));
    for (const { peer, waiter } of line) await enqueue(peer.store, waiter);
    for (const { peer, waiter } of line) {
      await store.release(owner);
      expect((await peer.grants.next()).owner).toBe(waiter.id);
      [store, owner] = [peer.store, waiter];
    }
    expect(await world.queue()).toEqual([]);
  });

  it('go to one listener: a second one is refused', () => {
    const listener = { granted: () => {}, reconnected: () => {} };
    expect(() => holder.listen(listener)).toThrow('this store already has a listener');
  });

  it('keep to the order also where one asked again', async () => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await enqueue(a.store, first);
    await holder.release(owner);
    expect((await a.grants.next()).owner).toBe(first.id);
  });

  it('pass over one that did not ask again in time, wherever it stood', async () => {
    const owner = await world.held();
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    const first = await world.waiting(a);
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    const second = await world.waiting(a);
    await world.expire();
    await holder.release(owner);
    expect((await a.grants.next()).owner).toBe(first.id);
    await a.store.release(first);
    expect((await a.grants.next()).owner).toBe(second.id);
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });

  it('pass over an instance that is gone', async () => {
    const owner = await world.held();
    await world.waiting(a);
    await world.waiting(a);
    const alive = await world.waiting(b);
    await subject.kill('a');
    await holder.release(owner);
    expect((await b.grants.next()).owner).toBe(alive.id);
    expect(await world.queue()).toEqual([]);
  });

  it('go to nobody where all are gone: the resource is free', async () => {
    const owner = await world.held();
    await world.waiting(a);
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await subject.kill('a');
    await world.expire();
    expect(await holder.release(owner)).toBe(true);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('pass over one that withdrew', async () => {
    const owner = await world.held();
    const withdrawn = await world.waiting(a);
    const next = await world.waiting(b);
    await a.store.release(withdrawn);
    await holder.release(owner);
    expect((await b.grants.next()).owner).toBe(next.id);
    expect(await world.grantBeforeNow(a)).toBeUndefined();
  });

  it('are passed on by one that withdraws without knowing that it was granted', async () => {
    const owner = await world.held();
    const withdrawing = await world.waiting(a);
    const next = await world.waiting(b);
    await holder.release(owner);
    expect(await a.store.release(withdrawing)).toBe(true);
    expect((await b.grants.next()).owner).toBe(next.id);
  });

  it('are found by asking again where the message was lost', async () => {
    const owner = await world.held();
    const waiter = await world.waiting(a);
    await world.expire();
    await holder.release(owner);
    const { fencingToken } = await a.grants.next();
    for (const ask of [() => a.store.acquire(waiter, LONG_MS, PATIENT), () => a.store.acquire(waiter, 2 * LONG_MS)]) {
      const reply = await ask();
      expect(reply).toEqual({ status: 'granted', fencingToken: expect.any(Number) });
      expectSameToken((reply as { fencingToken: number }).fencingToken, fencingToken, features);
    }
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
  });

  it('are made once, though the release is sent again', async () => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    expect(await holder.release(owner)).toBe(true);
    const { fencingToken } = await a.grants.next();
    expect(await holder.release(owner)).toBe(false);
    expectSameToken(await take(a.store, first), fencingToken, features);
    expect(await world.queue()).toEqual(['b']);
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });
}

/** What every lock store keeps to: what a waiter is granted out of the queue, and what it is told. */
export function describeGrantTerms(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ world, holder, a, b } = here));

  it.each(['stock', '{a}:b %41\n\0 "é" 🔒 __proto__', '%7B 100 %', 'a b  c', '}', ' '])(
    'name the resource %j as it is, the waiter, its token and the time it asked',
    async (resource) => {
      const owner = await world.held(resource);
      const waiter = await world.waiting(a, resource, { sentAt: 1_234 });
      await holder.release(owner);
      const grant = await a.grants.next();
      expect(grant).toEqual({ resource, owner: waiter.id, fencingToken: expect.any(Number), sentAt: 1_234 });
      const { holders } = untimed(await holder.inspect(resource));
      expect(holders).toEqual([
        { instanceId: 'a', fencingToken: grant.fencingToken, ttlMs: expect.any(Number), depth: 1 },
      ]);
    },
  );

  it('say when the waiter asked last, rounded down', async () => {
    const owner = await world.held();
    const waiter = await world.waiting(a, 'stock', { sentAt: 1_000 });
    await enqueue(a.store, waiter, { sentAt: 86_400_002.9 });
    await a.store.acquire(waiter, LONG_MS);
    await holder.release(owner);
    expect((await a.grants.next()).sentAt).toBe(86_400_002);
  });

  it.each(possible(features, EXCLUSIVE, REENTRANT, READ, WRITE, permits(2, 3)))(
    'name the token and the time it asked, and last for what is left of the time since, in $mode mode',
    async (wish) => {
      const owner = await world.holding(world.holder, wish.permits ? permits(3, 3) : WRITE);
      const waiter = await world.queued(a, wish, { sentAt: 4_321.9, leaseMs: 2 * LONG_MS });
      await world.expire();
      await holder.release(owner);
      const { fencingToken, ...grant } = await a.grants.next();
      expect(grant).toEqual({ resource: 'stock', owner: waiter.id, sentAt: 4_321 });
      const { mode, holders } = untimed(await holder.inspect('stock'));
      expect(mode).toBe(wish.mode);
      expect(holders).toMatchObject([{ instanceId: 'a', fencingToken, depth: 1 }]);
      expect(holders[0]!.permits).toBe(wish.permits?.count);
      expect(holders[0]!.ttlMs).toBeLessThanOrEqual(2 * LONG_MS - SHORT_MS);
      expect(holders[0]!.ttlMs).toBeGreaterThan(LONG_MS);
      expect(await a.store.acquire(waiter, LONG_MS)).toEqual({ status: 'granted', fencingToken });
    },
  );

  describe('last', () => {
    /** What is left of the lease that the waiter gets now. */
    async function grantedTtlMs(waiter: () => Promise<unknown>): Promise<number> {
      const owner = await world.held();
      await waiter();
      await holder.release(owner);
      await a.grants.next();
      return (await holder.inspect('stock')).ttlMs;
    }

    it('for what is left of the time since the waiter asked', async () => {
      const ttlMs = await grantedTtlMs(async () => {
        await world.waiting(a);
        await world.expire();
      });
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS - SHORT_MS);
      expect(ttlMs).toBeGreaterThan(LONG_MS / 2);
    });

    it('as long as the waiter asked for, not as long as the lease before', async () => {
      const ttlMs = await grantedTtlMs(() => world.waiting(a, 'stock', { leaseMs: 2 * LONG_MS }));
      expect(ttlMs).toBeGreaterThan(LONG_MS);
    });

    it('as long as the waiter asked for at last', async () => {
      const ttlMs = await grantedTtlMs(async () => {
        const waiter = await world.waiting(a, 'stock', { leaseMs: 3 * LONG_MS });
        await enqueue(a.store, waiter, { leaseMs: LONG_MS });
      });
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS);
    });
  });

  it('keep the mode in which the waiter asked', async () => {
    const owner = await world.held('stock', 'reentrant');
    const exclusive = newOwner(a.store, 'stock', 'exclusive');
    const reentrant = newOwner(b.store, 'stock', 'reentrant');
    await enqueue(a.store, exclusive);
    await enqueue(b.store, reentrant);
    await holder.setDepth(owner, 3, LONG_MS);
    await holder.release(owner);
    await a.grants.next();
    expect((await holder.inspect('stock')).mode).toBe('exclusive');
    expect(await a.store.setDepth(exclusive, 2, LONG_MS)).toBe(false);
    await a.store.release(exclusive);
    await b.grants.next();
    expect(await holder.inspect('stock')).toMatchObject({ mode: 'reentrant', holders: [{ depth: 1 }] });
    expect(await b.store.setDepth(reentrant, 2, LONG_MS)).toBe(true);
    expect((await holder.inspect('stock')).holders[0]?.depth).toBe(2);
  });

  it('have larger tokens than the leases of the resource before, by message or by reply', async () => {
    const tokens: number[] = [];
    for (let i = 0; i < 3; i++) {
      const owner = newOwner(holder, 'stock');
      tokens.push(await take(holder, owner));
      const waiter = await world.waiting(a);
      await holder.release(owner);
      tokens.push((await a.grants.next()).fencingToken);
      await a.store.release(waiter);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x - y));
    expect(tokens.every((token) => Number.isSafeInteger(token) && token % 32 === 0)).toBe(true);
  });
}
