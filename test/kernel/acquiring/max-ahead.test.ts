import { InvalidLockOptionsError, LockQueueFullError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

describe('maxAhead', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = ['a', 'b', 'c'].map((name) => world.instance(name)) as [Instance, Instance, Instance];
  });

  const wait = ({ locks }: Instance, maxAhead?: number, options: LockOptions = {}) =>
    track(locks.acquire('stock', { waitMs: Infinity, ...(maxAhead !== undefined && { maxAhead }), ...options }));
  const states = (calls: readonly { state: string }[]): string[] => calls.map(({ state }) => state);

  it('of 0 lets a call take a free resource, lets the next one wait for it, and refuses a third', async () => {
    const calls = [wait(a, 0), wait(a, 0), wait(a, 0)];
    await settle();
    expect(states(calls)).toEqual(['fulfilled', 'pending', 'rejected']);
    expect(calls[2]!.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxAhead: 0, where: 'process' });
    expect(calls[2]!.error).toBeInstanceOf(LockQueueFullError);
    expect((calls[2]!.error as Error).message).toContain(
      'The queue for "stock" is too long: more than 0 calls would wait before this one (maxAhead)',
    );
  });

  it('counts the calls of other processes for the first call of a process', async () => {
    await a.locks.acquire('stock');
    const first = wait(b, 0);
    await settle();
    const calls = [wait(c, 0), wait(c, 1)];
    await settle();
    expect(states([first, ...calls])).toEqual(['pending', 'rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxAhead: 0, where: 'redis' });
    expect(world.server.listWaiters('stock')).toEqual(['b', 'c']);
  });

  it('counts calls of other processes together with those of its own', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    wait(c);
    await settle();
    // Ahead of them: the call of b, and c's own.
    const calls = [wait(c, 1), wait(c, 2), wait(c, 2), wait(c, 3)];
    await settle();
    expect(states(calls)).toEqual(['rejected', 'pending', 'rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ maxAhead: 1, where: 'process' });
  });

  it('refuses a call as soon as its process learns its place', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const calls = [wait(c), wait(c, 1), wait(c, 2), wait(c, 2)];
    expect(states(calls)).toEqual(['pending', 'pending', 'pending', 'pending']);
    await settle();
    expect(states(calls)).toEqual(['pending', 'rejected', 'pending', 'rejected']);
  });

  it('counts the waiters in Redis also if the own process holds the resource', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const calls = [wait(a, 0), wait(a, 1)];
    await settle();
    expect(states(calls)).toEqual(['rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ maxAhead: 0, where: 'redis' });
  });

  it('does not refuse a call that waits already, however many join ahead of it later', async () => {
    b.store.keepsNoPlaces();
    const holder = await a.locks.acquire('stock', { strictOrder: true });
    const patient = wait(b, 0);
    await settle();
    wait(c);
    await world.clock.advance(10_000);
    expect(b.store.sent('acquire').length).toBeGreaterThan(5);
    expect(patient.state).toBe('pending');
    await holder.release();
    await settle();
    expect(patient.state).toBe('fulfilled');
  });

  it('names the limit that was reached: maxWaiters if that is the smaller one', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const call = wait(c, 5, { maxWaiters: 1 });
    await settle();
    expect(call.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxWaiters: 1 });
    expect(call.error).not.toHaveProperty('maxAhead');
  });

  it('is refused together with retry, before anything is sent', async () => {
    const error = await rejection(a.locks.acquire('stock', { maxAhead: 1, retry: fixedInterval({ intervalMs: 100 }) }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option: 'maxAhead' });
    expect(a.store.commands).toEqual([]);
  });
});
