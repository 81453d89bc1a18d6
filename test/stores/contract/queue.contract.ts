import type { LockStore, LockOwner } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import { newOwner, enqueue, LONG_MS, PATIENT, SHORT_MS, type Subject, take } from '../subjects/subject.js';

/** What every lock store keeps to: who stands in the queue of a resource, and where. */
export function describeQueue(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  it('is joined at its end, by as many waiters of an instance as ask', async () => {
    await world.held();
    for (const peer of [a, b, a]) await world.waiting(peer);
    expect(await world.queue()).toEqual(['a', 'b', 'a']);
  });

  it('is not joined where the resource is free', async () => {
    const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS, PATIENT);
    expect(reply.status).toBe('granted');
    expect(await world.queue()).toEqual([]);
  });

  it('tells who joins, and who asks again, how long the lease of the holder lasts', async () => {
    await world.held();
    const waiter = newOwner(a.store, 'stock');
    for (const _ of ['joins', 'asks again']) {
      const reply = await a.store.acquire(waiter, SHORT_MS, PATIENT);
      expect(reply).toMatchObject({ status: 'queued', ttlMs: expect.any(Number), seen: expect.anything() });
      expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
    }
  });

  it('keeps the place of one that asks again', async () => {
    await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await enqueue(a.store, first);
    expect(await world.queue()).toEqual(['a', 'b']);
  });

  it('forgets one that does not ask again in time', async () => {
    await world.held();
    const diligent = await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await enqueue(a.store, diligent, { leaseMs: LONG_MS });
    await world.expire();
    expect(await world.queue()).toEqual(['a']);
  });

  it('lasts as long as the most patient one in it, not as long as the last', async () => {
    await world.held();
    await world.waiting(a, 'stock', { leaseMs: LONG_MS });
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await world.expire();
    expect(await world.queue()).toEqual(['a']);
  });

  it('is not joined by one that only asks', async () => {
    await world.held();
    const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS);
    expect(reply.status).toBe('busy');
    expect(await world.queue()).toEqual([]);
  });

  it('leaves one that stands in it and only asks as it is: in its place, and no longer alive than before', async () => {
    await world.held();
    const patient = await world.waiting(a);
    const hasty = await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    expect((await b.store.acquire(hasty, LONG_MS)).status).toBe('busy');
    expect((await a.store.acquire(patient, SHORT_MS)).status).toBe('busy');
    await world.expire();
    expect(await world.queue()).toEqual(['a']);
  });

  it('is left by one that got the resource on another way', async () => {
    const owner = await world.held();
    const runner = await world.waiting(a);
    await world.waiting(b);
    await world.leaseEnds(owner);
    const claim = {
      owner: runner,
      leaseMs: LONG_MS,
      keepMs: LONG_MS,
      overlap: 'skip',
      takeOver: 'nothing',
    } as const;
    const { tickStore } = a;
    expect((await tickStore.claim({ resource: 'stock', tick: 'noon' }, claim)).status).toBe('granted');
    expect((await a.store.acquire(runner, LONG_MS, PATIENT)).status).toBe('granted');
    expect(await world.queue()).toEqual(['b']);
  });

  describe('that is full', () => {
    const TWO = { ...PATIENT, maxWaiters: 2 };
    let first: LockOwner;

    beforeEach(async () => {
      await world.held();
      first = await world.waiting(a, 'stock', TWO);
      await world.waiting(b, 'stock', TWO);
    });

    it('takes nobody, and says how long the lease of the holder lasts', async () => {
      const reply = await b.store.acquire(newOwner(b.store, 'stock'), LONG_MS, TWO);
      expect(reply).toEqual({ status: 'full', ttlMs: expect.any(Number), seen: expect.anything() });
      expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
      expect(await world.queue()).toEqual(['a', 'b']);
    });

    it('takes one that accepts a longer queue', async () => {
      await world.waiting(a, 'stock', { maxWaiters: 3 });
      expect(await world.queue()).toEqual(['a', 'b', 'a']);
    });

    it('lets those in it ask again', async () => {
      await enqueue(a.store, first, { ...TWO, maxWaiters: 1 });
      expect(await world.queue()).toEqual(['a', 'b']);
    });

    it('has room again when one withdraws', async () => {
      await a.store.release(first);
      await world.waiting(a, 'stock', TWO);
      expect(await world.queue()).toEqual(['b', 'a']);
    });

    it('has room again when one behind a living one does not ask again in time', async () => {
      const owners = [await world.waiting(a, 'stock', { maxWaiters: 3, leaseMs: SHORT_MS })];
      owners.push(await world.waiting(b, 'stock', { maxWaiters: 4, leaseMs: SHORT_MS }));
      await world.expire();
      const FOUR = { ...PATIENT, maxWaiters: 4 };
      await world.waiting(a, 'stock', FOUR);
      await world.waiting(a, 'stock', FOUR);
      expect(await world.queue()).toEqual(['a', 'b', 'a', 'a']);
      expect((await b.store.acquire(newOwner(b.store, 'stock'), LONG_MS, FOUR)).status).toBe('full');
      // Those who were dropped are gone for good, and come to the end.
      await enqueue(b.store, owners[1]!, { maxWaiters: 5 });
      expect(await world.queue()).toEqual(['a', 'b', 'a', 'a', 'b']);
    });

    it('counts none of many that have died behind a living one, also for one that accepts few', async () => {
      for (let i = 0; i < 40; i++) await world.waiting(b, 'stock', { leaseMs: 10 * SHORT_MS });
      await world.expire();
      await subject.pass(10 * SHORT_MS);
      await world.waiting(a, 'stock', { maxWaiters: 3 });
      expect(await world.queue()).toEqual(['a', 'b', 'a']);
    });

    it('has room again when the first one does not ask again in time', async () => {
      await enqueue(a.store, first, { leaseMs: SHORT_MS });
      await world.expire();
      await world.waiting(a, 'stock', TWO);
      expect(await world.queue()).toEqual(['b', 'a']);
    });
  });

  it.each([
    ['first', 0, ['b', 'a']],
    ['middle', 1, ['a', 'a']],
    ['last', 2, ['a', 'b']],
  ])('is left by the %s one when it withdraws, and nothing else changes', async (_, place, rest) => {
    const owner = await world.held();
    const waiters = [await world.waiting(a), await world.waiting(b), await world.waiting(a)];
    const { store } = [a, b, a][place]!;
    for (const _sent of ['once', 'again']) {
      expect(await store.release(waiters[place]!)).toBe(false);
      expect(await world.queue()).toEqual(rest);
    }
    expect(await holder.verify(owner)).toBe(true);
    expect(await world.grantBeforeNow(a)).toBeUndefined();
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });

  describe('leaves nothing behind', () => {
    it('when the last one of those who waited has released', async () => {
      const owner = await world.held();
      const waiters = [await world.waiting(a), await world.waiting(a)];
      expect(await subject.isEmpty()).toBe(false);
      await holder.release(owner);
      for (const waiter of waiters) await a.store.release(waiter);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('when everybody has withdrawn', async () => {
      const owner = await world.held();
      const waiters = [await world.waiting(a), await world.waiting(a)];
      for (const waiter of waiters) await a.store.release(waiter);
      await holder.release(owner);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('when everybody has withdrawn, and the holder has died', async () => {
      const owner = await world.held();
      await a.store.release(await world.waiting(a));
      await world.leaseEnds(owner);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('when everybody has died', async () => {
      const owner = await world.held();
      await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await world.leaseEnds(owner);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('when one that came to a full queue of dead ones has died too', async () => {
      const owner = await world.held();
      const patient = await world.waiting(a);
      await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
      await a.store.release(patient);
      await world.expire();
      await world.waiting(a, 'stock', { leaseMs: 2 * SHORT_MS, maxWaiters: 1 });
      await subject.pass(3 * SHORT_MS);
      await world.leaseEnds(owner);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('of the numbers of those who gave up behind one that is patient', async () => {
      const owner = await world.held();
      const patient = await world.waiting(a);
      for (let i = 0; i < 20; i++) await b.store.release(await world.waiting(b));
      const next = await world.waiting(b);
      await holder.release(owner);
      await a.store.release(patient);
      expect(await b.store.verify(next)).toBe(true);
      await b.store.release(next);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('when the waiters have died, and the holder has released', async () => {
      const owner = await world.held();
      await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
      await world.expire();
      await holder.release(owner);
      expect(await subject.isEmpty()).toBe(true);
      await take(b.store, newOwner(b.store, 'stock'));
    });
  });
}
