import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import { contender, enqueue, LONG_MS, PATIENT, SHORT_MS, type Subject, take } from '../subjects/subject.js';

/** What every lock store keeps to: who is granted a resource that is released. */
export function describeGrants(createSubject: () => Promise<Subject>): void {
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

  it('go round in the order in which the contenders came, whatever their instance', async () => {
    let owner = await world.held();
    let store = holder;
    const line = [a, b, b, a, b].map((peer) => ({ peer, waiter: contender(peer.store, 'stock') }));
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
    expect(await a.store.acquire(waiter, LONG_MS, PATIENT)).toEqual({ status: 'granted', fencingToken });
    expect(await a.store.acquire(waiter, 2 * LONG_MS)).toEqual({ status: 'granted', fencingToken });
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
  });

  it('are made once, though the release is sent again', async () => {
    const owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    expect(await holder.release(owner)).toBe(true);
    const { fencingToken } = await a.grants.next();
    expect(await holder.release(owner)).toBe(false);
    expect(await take(a.store, first)).toBe(fencingToken);
    expect(await world.queue()).toEqual(['b']);
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });
}
