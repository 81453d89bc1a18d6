import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay } from '../../support/world/scripted-store.js';

/** When the end moves nearer. The waiters have asked who waits for long, and keep their places 15 s later. */
const MOVES_AT_MS = 6_000;

/** After each of these, the resource is free in two seconds, much earlier than the waiters expected. */
const NEARER: [string, LockOptions, (lease: Lease) => Promise<unknown>][] = [
  ['a minimum', { minHoldMs: MOVES_AT_MS + 2_000, leaseMs: 120_000 }, (lease) => lease.release()],
  ['an exact extension', { leaseMs: 120_000, watchdog: false }, (lease) => lease.extend(2_000)],
];

describe.each(NEARER)('an end that moves nearer, by %s', (_, options, moveNearer) => {
  let world: LockWorld;
  let holder: Instance;
  let waiters: Instance[];
  let waits: Tracked<unknown>[];

  beforeEach(async () => {
    world = new LockWorld();
    holder = world.instance('holder');
    waiters = ['first', 'second', 'third', 'fourth', 'fifth'].map((name) => world.instance(name));
    const lease = await holder.locks.acquire('stock', options);
    waits = [];
    for (const instance of waiters) await joins(instance);
    await world.clock.advance(MOVES_AT_MS);
    await moveNearer(lease);
    await settle();
  });

  async function joins({ locks }: Instance, more: LockOptions = {}): Promise<void> {
    waits.push(track(locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000, ...more })));
    await settle();
  }

  /** Its commands and messages are lost from now on, and no connection of it listens. */
  async function dies({ store }: Instance): Promise<void> {
    store.all(lostOnTheWay);
    await store.close();
  }

  const states = () => waits.map(({ state }) => state);

  it('is known to the first waiter', async () => {
    await world.clock.advance(2_010);
    expect(states()).toEqual(['fulfilled', ...Array(4).fill('pending')]);
  });

  it.each([1, 2, 3])('is known to the waiter behind %i that have died since', async (dead) => {
    for (const instance of waiters.slice(0, dead)) await dies(instance);
    await world.clock.advance(7_000);
    expect(waits[dead]!.state).toBe('fulfilled');
  });

  it('costs the others no command while the first one takes its turn', async () => {
    await world.clock.advance(1_900);
    const before = waiters.map(({ store }) => store.commands.length);
    await world.clock.advance(900);
    expect(waiters.map(({ store }, index) => store.commands.length - before[index]!)).toEqual([1, 0, 0, 0, 0]);
  });
});

describe('a waiter that gives up before an end that has moved nearer', () => {
  it.each([1, 4, 9])('notifies the next one, even after %i before it', async (leaving) => {
    const world = new LockWorld();
    const lease = await world.instance('holder').locks.acquire('stock', { minHoldMs: 8_000, leaseMs: 120_000 });
    const stop = new AbortController();
    const stays = world.instance('stays');
    for (let index = 0; index < leaving; index++) {
      const { signal } = stop;
      track(world.instance(`leaves-${index}`).locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000, signal }));
      await settle();
    }
    const wait = track(stays.locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000 }));
    await world.clock.advance(MOVES_AT_MS);
    await lease.release();
    await settle();
    stop.abort();
    await world.clock.advance(2_010);
    expect(wait.state).toBe('fulfilled');
  });

  it('costs nothing later if the holder renews: the next keep overrides the message', async () => {
    const world = new LockWorld();
    await world.instance('holder').locks.acquire('stock', { leaseMs: 30_000 });
    const stop = new AbortController();
    const stays = world.instance('stays');
    track(world.instance('leaves').locks.acquire('stock', { waitMs: Infinity, signal: stop.signal }));
    await settle();
    track(stays.locks.acquire('stock', { waitMs: Infinity }));
    await world.clock.advance(8_000);
    stop.abort();
    await settle();
    expect(stays.store.notices).toHaveLength(1);
    await world.clock.advance(120_000);
    expect(stays.store.sent('acquire')).toHaveLength(1);
  });
});
