import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import { newOwner, LONG_MS, PATIENT, READ, SHORT_MS, type Subject, take, WRITE } from '../subjects/subject.js';

/** What every lock store keeps to: a writer waits for the readers before it, and those that come after wait for the writer. */
export function describeWriter(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  it('has a depth, as a reentrant holder has', async () => {
    const writer = newOwner(a.store, 'stock', 'write');
    const fencingToken = await take(a.store, writer);
    for (const depth of [2, 2, 3, 1]) {
      expect(await a.store.setDepth(writer, depth, 2 * LONG_MS)).toBe(true);
      expect(await b.store.setDepth(newOwner(b.store, 'stock', 'write'), 9, LONG_MS)).toBe(false);
      expect(await holder.inspect('stock')).toMatchObject({ mode: 'write', holders: [{ fencingToken, depth }] });
    }
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
  });

  it('waits for the last of the readers', async () => {
    const readers = [await world.holding(a, READ), await world.holding(b, READ)];
    const writer = await world.queued(a, WRITE);
    await a.store.release(readers[0]!);
    await world.nobodyElseIsGranted();
    await b.store.release(readers[1]!);
    await world.granted(a, writer);
    expect(await holder.inspect('stock')).toMatchObject({
      mode: 'write',
      holders: [{ instanceId: 'a' }],
      waiters: [],
    });
  });

  it('is delayed by a dead reader for its lease at most, while the live ones go on', async () => {
    const dead = await world.holding(a, READ, SHORT_MS);
    const alive = await world.holding(b, READ);
    const writer = await world.queued(a, WRITE);
    await world.expire();
    expect(await world.holders()).toEqual(['b']);
    expect(await a.store.verify(dead)).toBe(false);
    expect(await a.store.renew(dead, LONG_MS)).toBe(false);
    expect(await a.store.release(dead)).toBe(false);
    expect(await b.store.renew(alive, LONG_MS)).toBe(true);
    await world.nobodyElseIsGranted();
    await b.store.release(alive);
    await world.granted(a, writer);
  });

  it('gets the resource when it asks again after the last of the readers has died', async () => {
    await world.holding(a, READ, SHORT_MS);
    await world.holding(b, READ, SHORT_MS);
    const writer = await world.queued(a, WRITE);
    await world.expire();
    expect((await a.store.acquire(writer, LONG_MS, PATIENT)).status).toBe('granted');
  });

  it('that waits keeps new readers out: they queue behind it, or find the resource busy', async () => {
    const reader = await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    expect((await world.ask(b, READ)).status).toBe('busy');
    const late = await world.queued(b, READ);
    expect(await world.holders()).toEqual(['holder']);
    await holder.release(reader);
    await world.granted(a, writer);
    await a.store.release(writer);
    await world.granted(b, late);
  });

  it('that withdraws at the head admits the readers behind it at once, and nobody further behind', async () => {
    await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    const readers = [await world.queued(b, READ), await world.queued(b, READ)];
    await world.queued(a, WRITE);
    await world.queued(b, READ);
    expect(await a.store.release(writer)).toBe(false);
    await world.granted(b, ...readers);
    await world.nobodyElseIsGranted();
    expect(await world.holders()).toEqual(['holder', 'b', 'b']);
    expect(await world.queue()).toEqual(['a', 'b']);
  });

  it('that withdraws further behind admits nobody', async () => {
    await world.holding(world.holder, READ);
    await world.queued(a, WRITE);
    const second = await world.queued(a, WRITE);
    await world.queued(b, READ);
    await a.store.release(second);
    await world.nobodyElseIsGranted();
    expect(await world.queue()).toEqual(['a', 'b']);
  });

  it('whose place at the head has expired keeps out nobody who asks', async () => {
    await world.holding(world.holder, READ);
    await world.queued(a, WRITE, { leaseMs: SHORT_MS });
    const readers = [await world.queued(b, READ), await world.queued(b, READ)];
    await world.expire();
    expect((await b.store.acquire(readers[0]!, LONG_MS, PATIENT)).status).toBe('granted');
    expect((await world.ask(a, READ)).status).toBe('granted');
    await world.granted(b, readers[1]!);
    expect(await world.queue()).toEqual([]);
  });

  it('whose instance is gone is passed over', async () => {
    const first = await world.holding(world.holder, WRITE);
    await world.queued(a, READ);
    await world.queued(a, WRITE);
    const reader = await world.queued(b, READ);
    await subject.kill('a');
    await holder.release(first);
    await world.granted(b, reader);
    expect(await world.holders()).toEqual(['b']);
    expect(await world.queue()).toEqual([]);
  });
}
