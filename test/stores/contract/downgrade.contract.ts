import type { LockStore, LockOwner } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  newOwner,
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
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

/** What every lock store keeps to: a writer that becomes a reader. */
export function describeDowngrade(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  it('keeps the token, and admits the readers who are next, not the writer behind them', async () => {
    const writer = newOwner(holder, 'stock', 'write');
    const token = await take(holder, writer);
    await holder.setDepth(writer, 3, LONG_MS);
    const readers = [await world.queued(a, READ), await world.queued(a, READ)];
    const second = await world.queued(b, WRITE);
    await world.queued(a, READ);
    expect(await holder.downgrade(writer, LONG_MS)).toBe(true);
    await world.granted(a, ...readers);
    await world.nobodyElseIsGranted();
    const state = untimed(await holder.inspect('stock'));
    expect(state).toMatchObject({ mode: 'read', waiters: [{ instanceId: 'b' }, { instanceId: 'a' }] });
    expect(state.holders).toHaveLength(3);
    expect(state.holders[0]).toEqual({
      instanceId: 'holder',
      fencingToken: token,
      ttlMs: expect.any(Number),
      depth: 1,
    });
    await holder.release(writer);
    for (const reader of readers) await a.store.release(reader);
    await world.granted(b, second);
  });

  it('admits nobody where a writer is next', async () => {
    const writer = await world.holding(world.holder, WRITE);
    await world.queued(a, WRITE);
    await world.queued(b, READ);
    expect(await holder.downgrade(writer, LONG_MS)).toBe(true);
    await world.nobodyElseIsGranted();
    expect(await world.holders()).toEqual(['holder']);
  });

  it('lets new readers in where nobody waits', async () => {
    const writer = await world.holding(world.holder, WRITE);
    await holder.downgrade(writer, LONG_MS);
    await world.holding(a, READ);
    expect((await world.ask(b, WRITE)).status).toBe('busy');
  });

  it('is counted once when it is sent again, and has its lease as long as asked for, never shorter', async () => {
    const writer = await world.holding(world.holder, WRITE);
    expect(await holder.downgrade(writer, SHORT_MS)).toBe(true);
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS / 2);
    const { holders } = untimed(await holder.inspect('stock'));
    expect(await holder.downgrade(writer, 2 * LONG_MS)).toBe(true);
    const state = untimed(await holder.inspect('stock'));
    expect(state.ttlMs).toBeGreaterThan(LONG_MS);
    expect(state.holders).toEqual([{ ...holders[0], ttlMs: expect.any(Number) }]);
    expect(await holder.downgrade(writer, SHORT_MS)).toBe(true);
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
  });

  it('makes a reader like any other: it renews and releases, and has no depth', async () => {
    const writer = await world.holding(world.holder, WRITE);
    await holder.downgrade(writer, 2 * LONG_MS);
    expect((await holder.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
    expect(await holder.setDepth(writer, 2, LONG_MS)).toBe(false);
    expect(await holder.renew(writer, 3 * LONG_MS)).toBe(true);
    expect(await holder.verify(writer)).toBe(true);
    expect(await holder.release(writer)).toBe(true);
    expect(await holder.downgrade(writer, LONG_MS)).toBe(false);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('is the end of a writer that is dead: nothing comes of it', async () => {
    const writer = await world.holding(world.holder, WRITE);
    await world.leaseEnds(writer);
    expect(await holder.downgrade(writer, LONG_MS)).toBe(false);
    expect(await subject.isEmpty()).toBe(true);
  });

  it.each(possible(features, EXCLUSIVE, REENTRANT, permits(1, 2)))('is nothing for $mode', async (wish) => {
    const owner = await world.holding(world.holder, wish);
    expect(await holder.downgrade(owner, LONG_MS)).toBe(false);
    expect((await holder.inspect('stock')).mode).toBe(wish.mode);
  });

  it.each([READ, WRITE])('is nothing for a stranger, nor for one who waits ($mode)', async (wish) => {
    await world.holding(world.holder, wish);
    const others: LockOwner[] = [newOwner(a.store, 'stock', 'write'), await world.queued(a, WRITE)];
    for (const other of others) expect(await a.store.downgrade(other, LONG_MS)).toBe(false);
    expect(await holder.inspect('stock')).toMatchObject({ mode: wish.mode, holders: [{ instanceId: 'holder' }] });
  });
}
