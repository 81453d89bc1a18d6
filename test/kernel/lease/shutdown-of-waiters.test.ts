import { LockShutdownError } from '../../../lib/kernel/api/errors.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';

describe('a shutdown rejects waiters', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = (count: number) =>
    Array.from({ length: count }, () => track(a.locks.acquire('stock', { waitMs: Infinity })));

  async function shutDown(waiting: Tracked<unknown>[], drainMs = 5_000): Promise<Tracked<void>> {
    const shutdown = track(a.locks.shutdown(drainMs));
    await settle();
    for (const { error } of waiting) expect(error).toBeInstanceOf(LockShutdownError);
    expect(eventsOf(a, 'notAcquired')).toHaveLength(waiting.length);
    return shutdown;
  }

  it('behind a holder of the process: its lease is released to the others, not passed on', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait(3);
    const other = track(b.locks.acquire('stock'));
    await settle();
    const shutdown = await shutDown(waiting);
    expect(shutdown.state).toBe('pending');
    expect(holder.isHeld()).toBe(true);
    await holder.release();
    await settle();
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'release']);
    expect(other.state).toBe('fulfilled');
    expect(shutdown.state).toBe('fulfilled');
  });

  it('in the queue of the store, which they leave', async () => {
    const holder = await b.locks.acquire('stock', { leaseMs: 3_000 });
    const waiting = wait(3);
    await world.clock.advance(2_000);
    const shutdown = await shutDown(waiting);
    expect(world.server.listWaiters('stock')).toEqual([]);
    expect(shutdown.state).toBe('fulfilled');
    await holder.release();
    await world.clock.advance(5_000);
    expect(world.server.isEmpty).toBe(true);
    expect(world.clock.timers).toBe(0);
  });

  it('in the middle of a rotation: the release counts, and no waiter is left in the queue', async () => {
    const holder = await a.locks.acquire('stock', { strictOrder: true });
    const waiting = wait(2);
    const other = track(b.locks.acquire('stock'));
    await settle();
    const reply = gate();
    a.store.next('rotate', repliedWhen(reply.opened));
    const releasing = track(holder.release());
    await settle();
    const shutdown = await shutDown(waiting);
    expect(shutdown.state).toBe('pending'); // for the answer to the release
    expect(world.server.listWaiters('stock')).toEqual([]);
    reply.open();
    await settle();
    expect([releasing.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(eventsOf(a, 'released')).toHaveLength(1);
    await other.value.release();
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it('that were granted in that very moment: the message is answered with a release', async () => {
    const holder = await b.locks.acquire('stock');
    const waiting = wait(1);
    await settle();
    const releasing = holder.release();
    const shutdown = track(a.locks.shutdown(1_000));
    await releasing;
    await settle();
    expect(waiting[0]!.error).toBeInstanceOf(LockShutdownError);
    expect(shutdown.state).toBe('fulfilled');
    expect(world.server.isEmpty).toBe(true);
  });

  it('even while Redis hangs, and ends in time', async () => {
    await b.locks.acquire('stock', { leaseMs: 3_000, watchdog: false });
    const waiting = wait(2);
    await settle();
    a.store.all(lostOnTheWay);
    const shutdown = await shutDown(waiting);
    await world.clock.advance(1_000);
    expect(shutdown.state).toBe('fulfilled');
    expect(a.store.isClosed).toBe(true);
    expect(world.clock.timers).toBe(1); // of b
  });
});
