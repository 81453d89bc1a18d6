import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { gate, track } from '../../support/expect/tracked.js';

const COHORT_MS = 10;

describe('the order of tokens if Redis has lost the lock of a process that passes it on in memory', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const acquire = ({ locks }: Instance, options: LockOptions = {}) => locks.acquire('stock', options);
  const forceRelease = async ({ locks }: Instance) => {
    const { holders } = await locks.inspect('stock');
    return locks.operators.forceRelease('stock', { fencingToken: holders[0]!.fencingToken });
  };

  /** Everything is gone, and it can be known by the connection, which is new. */
  const restart = ({ store }: Instance) => {
    for (const resource of world.server.held()) world.server.lose(resource);
    store.reconnect();
  };

  it('is wrong for no longer than 10 ms after the process took the lock', async () => {
    const first = await acquire(a);
    const waiting = [1, 2].map(() => track(acquire(a)));
    await settle();
    await forceRelease(b);
    const other = await acquire(b);
    await world.clock.advance(COHORT_MS - 1);
    await first.release();
    await settle();
    // Granted after the other one, and smaller: what checks tokens refuses it, which is right.
    expect(waiting[0]!.value.fencingToken).toBe(first.fencingToken + 1);
    expect(waiting[0]!.value.fencingToken).toBeLessThan(other.fencingToken);
    await world.clock.advance(1);
    await waiting[0]!.value.release();
    await settle();
    expect(waiting[1]!.state).toBe('pending');
    await other.release();
    await settle();
    expect(waiting[1]!.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it.each([
    ['this process itself forces the release', async () => void (await forceRelease(a))],
    ['the connection is new, as after a restart without data', async () => restart(a)],
  ])('is right at once if %s', async (_, happen) => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await settle();
    await happen();
    const other = await acquire(b);
    await first.release().catch(() => {});
    await settle();
    expect(waiting.state).toBe('pending');
    await other.release();
    await world.clock.advance(1_300);
    expect(waiting.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it('is right while the reply to its own forced release is on its way', async () => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await settle();
    const reply = gate();
    a.store.next('forceRelease', async (execute) => {
      const done = await execute();
      await reply.opened;
      return done;
    });
    const forced = track(forceRelease(a));
    await settle();
    const other = await acquire(b);
    await first.release();
    await settle();
    expect(waiting.state).toBe('pending');
    reply.open();
    await settle();
    expect(forced.value).toBe(true);
    await other.release();
    await settle();
    expect(waiting.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it('is right for readers that would join one whose lock is in doubt', async () => {
    await acquire(a, { mode: 'read' });
    restart(a);
    const writer = await acquire(b, { mode: 'write' });
    const reader = track(acquire(a, { mode: 'read' }));
    await settle();
    expect(reader.state).toBe('pending');
    await writer.release();
    await world.clock.advance(1_300);
    expect(reader.value.fencingToken).toBeGreaterThan(writer.fencingToken);
  });

  it('costs one request to Redis if nothing was lost', async () => {
    const first = await acquire(a);
    const waiting = [1, 2].map(() => track(acquire(a)));
    await settle();
    a.store.reconnect();
    await first.release();
    await settle();
    await waiting[0]!.value.release();
    await settle();
    expect(waiting[1]!.value.fencingToken).toBe(waiting[0]!.value.fencingToken + 1);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'rotate']);
  });
});
