import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import { newOwner, LONG_MS, PATIENT, permits, SHORT_MS, type Subject, take } from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

const ONE = permits(1, 3);
const TWO = permits(2, 3);
const ALL = permits(3, 3);

/** What every lock store keeps to: as many permits are out as there are. */
export function describeSemaphore(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  it('has as many holders as permits, each with its own token and expiry', async () => {
    const tokens: number[] = [];
    for (const [{ store }, wish, leaseMs] of [
      [a, ONE, LONG_MS],
      [b, TWO, 3 * LONG_MS],
    ] as const) {
      tokens.push(await take(store, { ...newOwner(store, 'stock'), ...wish }, leaseMs));
    }
    expect((await world.ask(a, ONE)).status).toBe('busy');
    const ttlMs = expect.any(Number);
    const state = untimed(await holder.inspect('stock'));
    expect(state).toEqual({
      resource: 'stock',
      mode: 'semaphore',
      holders: [
        { instanceId: 'a', fencingToken: tokens[0], ttlMs, depth: 1, permits: 1 },
        { instanceId: 'b', fencingToken: tokens[1], ttlMs, depth: 1, permits: 2 },
      ],
      ttlMs: state.holders[1]!.ttlMs,
      permits: { total: 3, available: 0 },
      waiters: [],
    });
    expect(state.holders[0]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
    expect(state.ttlMs).toBeGreaterThan(2 * LONG_MS);
  });

  it('gives all permits that somebody asks for, or none', async () => {
    await world.holding(a, TWO);
    expect((await world.ask(b, TWO)).status).toBe('busy');
    expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 1 });
    expect((await world.ask(b, ONE)).status).toBe('granted');
  });

  it('tells others when the first of the leases ends: then there may be permits', async () => {
    await world.holding(a, ONE, 3 * LONG_MS);
    await world.holding(b, ONE, LONG_MS);
    await world.holding(a, ONE, 2 * LONG_MS);
    for (const queueing of [undefined, PATIENT]) {
      const { ttlMs } = (await world.ask(b, ONE, queueing)) as { ttlMs: number };
      expect(ttlMs).toBeGreaterThan(LONG_MS / 2);
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS);
    }
  });

  it('gives a permit that is released to the first in the queue, and to nobody else', async () => {
    const owner = await world.holding(world.holder, ONE);
    await world.holding(world.holder, TWO);
    const first = await world.queued(a, ONE);
    await world.queued(b, ONE);
    expect(await holder.release(owner)).toBe(true);
    await world.granted(a, first);
    await world.nobodyElseIsGranted();
    expect(untimed(await holder.inspect('stock')).waiters).toEqual([
      { instanceId: 'b', mode: 'semaphore', permits: 1 },
    ]);
    expect(await holder.release(owner)).toBe(false);
    await world.nobodyElseIsGranted();
  });

  it('has permits that were taken at once back at once', async () => {
    const owner = await world.holding(world.holder, ALL);
    const waiters = [await world.queued(a, ONE), await world.queued(a, TWO)];
    await world.queued(b, ONE);
    await holder.release(owner);
    await world.granted(a, ...waiters);
    await world.nobodyElseIsGranted();
    expect(await holder.inspect('stock')).toMatchObject({
      holders: [{ permits: 1 }, { permits: 2 }],
      permits: { total: 3, available: 0 },
    });
  });

  it('does not let small requests overtake a large one', async () => {
    const owners = [await world.holding(world.holder, ONE), await world.holding(world.holder, ONE)];
    const large = await world.queued(a, ALL);
    expect((await world.ask(b, ONE)).status).toBe('busy'); // though a permit is free
    const small = await world.queued(b, ONE);
    await holder.release(owners[0]!);
    await world.nobodyElseIsGranted();
    await holder.release(owners[1]!);
    await world.granted(a, large);
    await world.nobodyElseIsGranted();
    await a.store.release(large);
    await world.granted(b, small);
  });

  it('gives the permits to those behind a large request that is withdrawn', async () => {
    await world.holding(world.holder, ONE);
    const large = await world.queued(a, ALL);
    const small = [await world.queued(b, ONE), await world.queued(b, ONE)];
    expect(await a.store.release(large)).toBe(false);
    await world.granted(b, ...small);
    expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 0 });
  });

  it('has the permits of a dead holder back when its lease is over', async () => {
    const dead = await world.holding(a, TWO, SHORT_MS);
    const alive = await world.holding(b, ONE);
    const first = await world.queued(a, ONE);
    const second = await world.queued(b, ONE);
    await world.expire();
    expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 2 });
    expect(await a.store.renew(dead, LONG_MS)).toBe(false);
    expect(await a.store.verify(dead)).toBe(false);
    expect((await a.store.acquire(first, LONG_MS, PATIENT)).status).toBe('granted');
    expect((await world.ask(a, ONE)).status).toBe('busy');
    await world.granted(b, second);
    expect(await b.store.verify(alive)).toBe(true);
  });

  it('lets only the owner renew and release, his own permits only', async () => {
    const first = await world.holding(a, ONE);
    const second = await world.holding(b, TWO);
    expect(await b.store.renew({ ...newOwner(b.store, 'stock'), ...ONE }, LONG_MS)).toBe(false);
    expect(await b.store.release({ ...newOwner(b.store, 'stock'), ...ONE })).toBe(false);
    expect(await b.store.setDepth(second, 2, LONG_MS)).toBe(false);
    expect(await b.store.renew(second, 2 * LONG_MS)).toBe(true);
    const { holders } = untimed(await holder.inspect('stock'));
    expect(holders[0]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
    expect(holders[1]!.ttlMs).toBeGreaterThan(LONG_MS);
    expect(await a.store.release(first)).toBe(true);
    expect(await world.holders()).toEqual(['b']);
  });

  it('counts one who asks again once, with the same token', async () => {
    const owner = { ...newOwner(a.store, 'stock'), ...TWO };
    const token = await take(a.store, owner);
    expect(await take(a.store, owner)).toBe(token);
    expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 1 });
  });

  it('passes over an instance that is gone, whose permits go to the next', async () => {
    const owner = await world.holding(world.holder, ALL);
    await world.queued(a, TWO);
    const waiters = [await world.queued(b, TWO), await world.queued(b, ONE)];
    await subject.kill('a');
    await holder.release(owner);
    await world.granted(b, ...waiters);
    expect((await holder.inspect('stock')).permits).toEqual({ total: 3, available: 0 });
  });

  it('hands permits over to the next of an instance, who stands behind those that wait', async () => {
    const owner = await world.holding(world.holder, ALL);
    const waiter = await world.queued(a, TWO);
    const next = { ...newOwner(holder, 'stock'), ...TWO };
    expect(await holder.rotate(owner, next, LONG_MS, PATIENT)).toMatchObject({
      released: true,
      next: { status: 'queued' },
    });
    await world.granted(a, waiter);
    await a.store.release(waiter);
    await world.granted(world.holder, next);
  });

  it('drops one that waits for permits of what is a lock by now', async () => {
    const owner = await world.holding(world.holder, ALL);
    const waiter = await world.queued(a, ONE);
    const second = await world.queued(b, ONE);
    await world.leaseEnds(owner);
    const runner = newOwner(b.store, 'stock');
    const claim = { owner: runner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', takeOver: 'nothing' } as const;
    expect((await b.tickStore.claim({ resource: 'stock', tick: 'noon' }, claim)).status).toBe('granted');
    const found = { mode: 'exclusive', total: 1 };
    expect(await b.store.acquire(second, LONG_MS, PATIENT)).toMatchObject({ status: 'mismatch', found });
    expect(await world.queue()).not.toContain('b');
    expect(await a.store.acquire(waiter, LONG_MS, PATIENT)).toMatchObject({ status: 'mismatch', found });
    expect(await world.queue()).toEqual([]);
    await world.nobodyElseIsGranted();
  });

  it('is held to those who claim a tick, until the first of the leases ends', async () => {
    await world.holding(a, ONE);
    const owner = newOwner(b.store, 'stock');
    const claim = { owner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', takeOver: 'nothing' } as const;
    expect(await b.tickStore.claim({ resource: 'stock', tick: 'noon' }, claim)).toEqual({ status: 'overlap' });
    expect(await world.holders()).toEqual(['a']);
  });

  it('leaves nothing behind', async () => {
    const owners = [await world.holding(a, ONE), await world.holding(a, TWO)];
    // The second one decides on a fourth permit, which is the first one's.
    const waiters = [await world.queued(b, ONE), await world.queued(b, permits(1, 4, true))];
    await world.granted(b, waiters[0]!);
    await b.store.release(waiters[0]!);
    await world.granted(b, waiters[1]!);
    for (const owner of owners) await a.store.release(owner);
    await b.store.release(waiters[1]!);
    expect(await subject.isEmpty()).toBe(true);
    await world.holding(a, ONE, SHORT_MS);
    await world.holding(a, TWO, SHORT_MS);
    await world.expire();
    expect(await subject.isEmpty()).toBe(true);
  });
}
