import type { LockStore } from '../../lib/core/lock-store.js';
import { WAITER_SILENCE_MS } from '../../lib/core/lock-store.js';
import { WakeLog } from '../support/wake-log.js';
import { contender, LONG_MS, type Subject, take } from './subject.js';

/** What every lock store keeps to: who is woken when a resource may be free. */
export function describeWakeUps(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let holder: LockStore;
  let a: LockStore;
  let b: LockStore;
  let wakesOfA: WakeLog;
  let wakesOfB: WakeLog;

  beforeEach(async () => {
    subject = await createSubject();
    ({ store: holder } = await subject.open('holder'));
    ({ store: a } = await subject.open('a'));
    ({ store: b } = await subject.open('b'));
    wakesOfA = new WakeLog(a);
    wakesOfB = new WakeLog(b);
  });
  afterEach(() => subject.close());

  /** Holds the resource and lets the given instances wait for it, in this order. */
  async function lineUp(resource: string, ...waiters: LockStore[]) {
    const owner = contender(holder, resource);
    await take(holder, owner);
    for (const store of waiters) await store.acquire(contender(store, resource), LONG_MS, true);
    return owner;
  }

  /** A wake-up that is known to come. Messages keep their order: what should not have come would have come before it. */
  async function wakeByOtherResource(store: LockStore) {
    const owner = await lineUp('end of test', store);
    await holder.release(owner, false);
  }

  it('wakes the one that waits longest after a release, and only that one', async () => {
    const owner = await lineUp('stock', a, b);
    await holder.release(owner, false);
    expect(await wakesOfA.next()).toBe('stock');
    await wakeByOtherResource(b);
    expect(await wakesOfB.next()).toBe('end of test');
  });

  it('passes the wake-up on when the woken instance withdraws', async () => {
    const owner = await lineUp('stock', a, b);
    await holder.release(owner, false);
    await wakesOfA.next();
    expect(await a.release(contender(a, 'stock'), true)).toBe(false);
    expect(await wakesOfB.next()).toBe('stock');
  });

  it('wakes nobody when a waiter withdraws while the resource is held', async () => {
    await lineUp('stock', a, b);
    await a.release(contender(a, 'stock'), true);
    expect((await b.inspect('stock')).waiters).toEqual(['b']);
    await wakeByOtherResource(b);
    expect(await wakesOfB.next()).toBe('end of test');
  });

  it('wakes the next one after a withdrawn waiter', async () => {
    const owner = await lineUp('stock', a, b);
    await a.release(contender(a, 'stock'), true);
    await holder.release(owner, false);
    expect(await wakesOfB.next()).toBe('stock');
  });

  it('counts an instance once, however often it asks', async () => {
    await lineUp('stock', a, a, a);
    expect((await holder.inspect('stock')).waiters).toEqual(['a']);
  });

  it('does not count one that only asks', async () => {
    await lineUp('stock');
    await a.acquire(contender(a, 'stock'), LONG_MS, false);
    expect((await holder.inspect('stock')).waiters).toEqual([]);
  });

  it('forgets a waiter that was granted the resource', async () => {
    const owner = await lineUp('stock', a);
    await holder.release(owner, false);
    const next = contender(a, 'stock');
    await a.acquire(next, LONG_MS, true);
    expect((await a.inspect('stock')).waiters).toEqual([]);
  });

  it('passes over an instance that is gone', async () => {
    const owner = await lineUp('stock', a, b);
    await subject.kill('a');
    await holder.release(owner, false);
    expect(await wakesOfB.next()).toBe('stock');
  });

  it('passes over an instance that has been silent for too long; asking again keeps one alive', async () => {
    const { store: c } = await subject.open('c');
    const owner = await lineUp('stock', a, c);
    await subject.pass(WAITER_SILENCE_MS / 2);
    await b.acquire(contender(b, 'stock'), LONG_MS, true);
    await c.acquire(contender(c, 'stock'), LONG_MS, true);
    await subject.pass(WAITER_SILENCE_MS / 2 + 100);
    expect((await holder.inspect('stock')).waiters).toEqual(['b', 'c']);
    await holder.release(owner, false);
    expect(await wakesOfB.next()).toBe('stock');
    await wakeByOtherResource(a);
    expect(await wakesOfA.next()).toBe('end of test');
  });

  it('names hostile resources as they are', async () => {
    const hostile = '{a}:b %41\n\0 "é" 🔒 __proto__';
    const owner = await lineUp(hostile, a);
    await holder.release(owner, false);
    expect(await wakesOfA.next()).toBe(hostile);
  });
}
