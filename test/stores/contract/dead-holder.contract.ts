import type { LockOwner } from '../../../lib/core/store/lock-store.js';
import { type Peer, QueueWorld } from '../subjects/queue-world.js';
import { newOwner, enqueue, LONG_MS, PATIENT, SHORT_MS, type Subject, take } from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

/**
 * What every lock store keeps to where the lease of a dead holder has ended while others wait: no message says so, and
 * whoever asks next sets things right.
 */
export function describeDeadHolder(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let a: Peer;
  let b: Peer;
  let dead: LockOwner;

  beforeEach(async () => {
    subject = await createSubject();
    world = await QueueWorld.open(subject);
    ({ a, b } = world);
    dead = await world.held();
  });
  afterEach(() => subject.close());

  it('shows a free resource, and those who wait', async () => {
    await world.waiting(a);
    await world.leaseEnds(dead);
    const state = untimed(await b.store.inspect('stock'));
    const waiters = [{ instanceId: 'a', mode: 'exclusive' }];
    expect(state).toEqual({ resource: 'stock', mode: null, holders: [], ttlMs: 0, waiters });
  });

  it('grants it to the first in the queue when that one asks again', async () => {
    const first = await world.waiting(a);
    await world.waiting(b);
    await world.leaseEnds(dead);
    const reply = await a.store.acquire(first, LONG_MS, PATIENT);
    expect(reply.status).toBe('granted');
    expect(await world.queue()).toEqual(['b']);
    expect(await world.grantBeforeNow(a)).toBeUndefined();
  });

  it('grants it to the first in the queue also when that one only asks', async () => {
    const first = await world.waiting(a);
    await world.leaseEnds(dead);
    await take(a.store, first);
    expect(await world.queue()).toEqual([]);
  });

  it.each([
    ['only asks', undefined, 'busy', ['b']],
    ['queues', PATIENT, 'queued', ['b', 'a']],
    ['finds the queue too long', { ...PATIENT, maxWaiters: 1 }, 'full', ['b']],
  ])('lets no newcomer jump the queue: the first in it is granted when one %s', async (_, queueing, status, queue) => {
    const first = await world.waiting(a, 'stock', { sentAt: 77 });
    await world.waiting(b);
    await world.leaseEnds(dead);
    const reply = await a.store.acquire(newOwner(a.store, 'stock'), LONG_MS, queueing);
    expect(reply).toMatchObject({ status, ttlMs: expect.any(Number), seen: expect.objectContaining({ count: 1 }) });
    expect(reply).toMatchObject({ seen: { list: [{ instanceId: 'a' }] } });
    expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
    expect(await a.grants.next()).toMatchObject({ resource: 'stock', owner: first.id, sentAt: 77 });
    expect(await a.store.verify(first)).toBe(true);
    expect(await world.queue()).toEqual(queue);
  });

  it('grants it to the first when the second asks again, who keeps his place', async () => {
    const first = await world.waiting(a);
    const second = await world.waiting(b);
    await world.waiting(a);
    await world.leaseEnds(dead);
    await enqueue(b.store, second);
    expect((await a.grants.next()).owner).toBe(first.id);
    expect(await world.queue()).toEqual(['b', 'a']);
  });

  it('grants it to the first who is alive when one asks again whose own place has expired: he joins the end', async () => {
    const late = await world.waiting(a, 'stock', { leaseMs: SHORT_MS });
    const first = await world.waiting(b);
    const second = await world.waiting(b);
    await world.leaseEnds(dead);
    await enqueue(a.store, late);
    expect((await b.grants.next()).owner).toBe(first.id);
    expect(await world.queue()).toEqual(['b', 'a']);
    await b.store.release(first);
    await b.store.release(second);
    expect((await a.grants.next()).owner).toBe(late.id);
  });

  it('grants it to the one that asks where all before him are dead', async () => {
    await world.waiting(a);
    const second = await world.waiting(b);
    await world.waiting(b);
    await subject.kill('a');
    await world.leaseEnds(dead);
    expect((await b.store.acquire(second, LONG_MS, PATIENT)).status).toBe('granted');
    expect(await b.store.verify(second)).toBe(true);
    expect(await world.queue()).toEqual(['b']);
  });

  it('grants it to a newcomer where all who waited are dead', async () => {
    await world.waiting(a);
    await world.waiting(b, 'stock', { leaseMs: SHORT_MS });
    await subject.kill('a');
    await world.leaseEnds(dead);
    const token = await take(b.store, newOwner(b.store, 'stock'));
    const { holders, waiters } = untimed(await b.store.inspect('stock'));
    expect(holders).toMatchObject([{ instanceId: 'b', fencingToken: token }]);
    expect(waiters).toEqual([]);
  });

  it('grants it to the next when the first one withdraws', async () => {
    const first = await world.waiting(a);
    const second = await world.waiting(b);
    await world.leaseEnds(dead);
    expect(await a.store.release(first)).toBe(false);
    expect((await b.grants.next()).owner).toBe(second.id);
  });

  it('grants it to the first when the dead holder comes back and releases', async () => {
    const first = await world.waiting(a);
    await world.leaseEnds(dead);
    expect(await world.holder.store.release(dead)).toBe(false);
    expect((await a.grants.next()).owner).toBe(first.id);
  });

  it('leaves nothing behind when the only one in the queue withdraws', async () => {
    const only = await world.waiting(a);
    await world.leaseEnds(dead);
    expect(await a.store.release(only)).toBe(false);
    expect(await subject.isEmpty()).toBe(true);
  });
}
