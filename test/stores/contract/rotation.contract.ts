import type { LockStore, LockOwner } from '../../../lib/core/store/lock-store.js';
import { type Peer, QueueWorld } from '../subjects/queue-world.js';
import { newOwner, enqueue, LONG_MS, PATIENT, type Subject, take } from '../subjects/subject.js';

const QUEUED = { status: 'queued', ttlMs: expect.any(Number), seen: expect.anything() };

/** What every lock store keeps to: a release and the next owner's acquire, in one step. */
export function describeRotation(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;
  let owner: LockOwner;
  let next: LockOwner;

  beforeEach(async () => {
    subject = await createSubject();
    world = await QueueWorld.open(subject);
    ({ a, b } = world);
    holder = world.holder.store;
    next = newOwner(holder, 'stock');
  });
  afterEach(() => subject.close());

  const rotate = () => holder.rotate(owner, next, LONG_MS, { ...PATIENT, sentAt: 99.5 });

  it('gives the resource to the next owner at once where nobody waits', async () => {
    owner = newOwner(holder, 'stock');
    const token = await take(holder, owner);
    const { released, next: reply } = await rotate();
    expect(released).toBe(true);
    expect(reply).toEqual({ status: 'granted', fencingToken: expect.any(Number) });
    const { fencingToken } = reply as { fencingToken: number };
    expect(fencingToken).toBeGreaterThan(token);
    expect(await holder.verify(owner)).toBe(false);
    expect(await holder.verify(next)).toBe(true);
    expect(await world.grantBeforeNow(world.holder)).toBeUndefined();
    // The reply was lost, and it is sent again.
    expect(await rotate()).toEqual({ released: false, next: { status: 'granted', fencingToken } });
  });

  it('gives the resource to the first in the queue; the next owner stands at its end', async () => {
    owner = await world.held();
    const first = await world.waiting(a);
    const second = await world.waiting(b);
    const reply = await rotate();
    expect(reply).toMatchObject({ released: true, next: QUEUED });
    expect((reply.next as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
    expect((await a.grants.next()).owner).toBe(first.id);
    expect(await world.queue()).toEqual(['b', 'holder']);
    await a.store.release(first);
    expect((await b.grants.next()).owner).toBe(second.id);
    await b.store.release(second);
    expect(await world.holder.grants.next()).toMatchObject({ owner: next.id, sentAt: 99 });
    expect(await holder.verify(next)).toBe(true);
  });

  it('changes nothing when it is sent again', async () => {
    owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    await rotate();
    await world.waiting(b);
    const { fencingToken } = await a.grants.next();
    expect(await rotate()).toMatchObject({ released: false, next: QUEUED });
    expect(await world.queue()).toEqual(['b', 'holder', 'b']);
    expect(await take(a.store, first)).toBe(fencingToken);
    expect(await world.grantBeforeNow(b)).toBeUndefined();
  });

  it('finds what became of the next owner when it is sent again later', async () => {
    owner = await world.held();
    const first = await world.waiting(a);
    await rotate();
    await a.store.release(first);
    const { fencingToken } = await world.holder.grants.next();
    expect(await rotate()).toEqual({ released: false, next: { status: 'granted', fencingToken } });
  });

  it('gives the resource to the next owner where all who waited are dead', async () => {
    owner = await world.held();
    await world.waiting(a);
    await subject.kill('a');
    expect(await rotate()).toMatchObject({ released: true, next: { status: 'granted' } });
    expect(await world.queue()).toEqual([]);
  });

  it('keeps the place of a next owner who stands in the queue already', async () => {
    owner = await world.held();
    const first = await world.waiting(a);
    await enqueue(holder, next);
    await world.waiting(b);
    expect(await rotate()).toMatchObject({ released: true, next: QUEUED });
    expect((await a.grants.next()).owner).toBe(first.id);
    expect(await world.queue()).toEqual(['holder', 'b']);
  });

  it('releases also where the queue is too long for the next owner', async () => {
    owner = await world.held();
    const first = await world.waiting(a);
    await world.waiting(b);
    const reply = await holder.rotate(owner, next, LONG_MS, { ...PATIENT, maxWaiters: 1 });
    expect(reply).toEqual({
      released: true,
      next: { status: 'full', ttlMs: expect.any(Number), seen: expect.anything() },
    });
    expect((await a.grants.next()).owner).toBe(first.id);
    expect(await world.queue()).toEqual(['b']);
  });

  it.each(['exclusive', 'reentrant'] as const)('grants in the mode of the next owner (%s)', async (mode) => {
    owner = await world.held('stock', mode === 'exclusive' ? 'reentrant' : 'exclusive');
    next = newOwner(holder, 'stock', mode);
    expect(await rotate()).toMatchObject({ released: true, next: { status: 'granted' } });
    expect((await holder.inspect('stock')).mode).toBe(mode);
    expect(await holder.setDepth(next, 2, LONG_MS)).toBe(mode === 'reentrant');
  });

  describe('by one who is not the owner', () => {
    it('leaves the lock alone; the next owner stands in the queue', async () => {
      const other = newOwner(a.store, 'stock');
      const token = await take(a.store, other);
      owner = newOwner(holder, 'stock');
      expect(await rotate()).toMatchObject({ released: false, next: QUEUED });
      expect(await world.queue()).toEqual(['holder']);
      expect(await take(a.store, other)).toBe(token);
      expect(await world.grantBeforeNow(world.holder)).toBeUndefined();
    });

    it('gives the next owner a resource that is free', async () => {
      owner = newOwner(holder, 'stock');
      expect(await rotate()).toMatchObject({ released: false, next: { status: 'granted' } });
      expect(await holder.verify(next)).toBe(true);
    });

    it('lets him leave the queue', async () => {
      await take(a.store, newOwner(a.store, 'stock'));
      owner = await world.waiting(world.holder);
      await world.waiting(b);
      expect(await rotate()).toMatchObject({ released: false, next: QUEUED });
      expect(await world.queue()).toEqual(['b', 'holder']);
    });

    it('gives a resource that a dead holder left to those who wait', async () => {
      owner = await world.held();
      const first = await world.waiting(a);
      await world.leaseEnds(owner);
      expect(await rotate()).toMatchObject({ released: false, next: QUEUED });
      expect((await a.grants.next()).owner).toBe(first.id);
    });
  });
}
