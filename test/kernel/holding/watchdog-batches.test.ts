import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { RENEWALS_AT_ONCE } from '../../../lib/kernel/holding/watchdog.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay } from '../../support/world/scripted-store.js';

describe('the renewals of many leases', () => {
  let world: LockWorld;
  let a: Instance;
  let begin: number;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    begin = world.clock.now();
  });

  const acquire = (count: number, options: LockOptions, name = 'order') =>
    Promise.all(Array.from({ length: count }, (_, i) => a.locks.acquire(`${name}:${i}`, options)));

  /** The number of renewals sent at each time. */
  function batches(): [number, number][] {
    const counts = new Map<number, number>();
    for (const { sentAt } of a.store.sent('renew')) counts.set(sentAt - begin, (counts.get(sentAt - begin) ?? 0) + 1);
    return [...counts];
  }

  it('are sent in batches, a millisecond apart', async () => {
    await acquire(2 * RENEWALS_AT_ONCE + 1, { leaseMs: 3_000 });
    await world.clock.advance(1_010);
    expect(batches()).toEqual([
      [1_000, RENEWALS_AT_ONCE],
      [1_001, RENEWALS_AT_ONCE],
      [1_002, 1],
    ]);
  });

  it('are each sent a third of the length after the last one, once they are spread', async () => {
    await acquire(RENEWALS_AT_ONCE + 1, { leaseMs: 3_000 });
    await world.clock.advance(2_010);
    expect(batches().map(([time]) => time)).toEqual([1_000, 1_001, 2_000, 2_001]);
  });

  it('are sent with the nearest deadline first, if they are late', async () => {
    await acquire(RENEWALS_AT_ONCE, { leaseMs: 30_000 }, 'long');
    await acquire(2, { leaseMs: 12_600 }, 'short');
    world.clock.block(10_000); // all are due, the short ones for longest
    await world.clock.advance(0);
    const sent = a.store.sent('renew').map(({ resource }) => resource);
    expect(sent.slice(0, 2).toSorted()).toEqual(['short:0', 'short:1']);
    expect(sent).toHaveLength(RENEWALS_AT_ONCE);
  });

  it('yield to one with a nearer deadline while they wait for their batch', async () => {
    await acquire(3 * RENEWALS_AT_ONCE, { leaseMs: 30_000 }, 'long');
    await world.clock.advance(9_984);
    await acquire(1, { leaseMs: 50 }, 'short'); // due at 10,000 and two thirds
    await world.clock.advance(17);
    const sent = a.store.sent('renew').filter(({ sentAt }) => sentAt - begin === 10_001);
    expect(sent[0]).toMatchObject({ resource: 'short:0' });
  });

  it('do not delay the end of an expired lease', async () => {
    await acquire(3 * RENEWALS_AT_ONCE, { leaseMs: 3_000 });
    const fixed = await a.locks.acquire('fixed', { watchdog: false, leaseMs: 1_013 }); // over at 1000 and a little
    const lostAt: number[] = [];
    fixed.signal.addEventListener('abort', () => lostAt.push(world.clock.now() - begin));
    await world.clock.advance(1_010);
    expect(lostAt[0]).toBeLessThanOrEqual(1_013 - 12 + 1);
  });

  it('end no lease of 3,000, whatever their lengths, and need one timer', async () => {
    const long = await acquire(3_000, { leaseMs: 30_000 }, 'long');
    const short = await acquire(20, { leaseMs: 50 }, 'short');
    await world.clock.advance(9_990); // the time-outs of the commands are over
    expect(world.clock.timers).toBe(1);
    await world.clock.advance(60);
    expect(
      batches()
        .filter(([time]) => time >= 10_000)
        .every(([, count]) => count <= RENEWALS_AT_ONCE),
    ).toBe(true);
    expect(new Set(a.store.sent('renew').map(({ resource }) => resource)).size).toBe(3_020);
    expect([...long, ...short].every((lease) => lease.isHeld())).toBe(true);
    expect(eventsOf(a, 'lost')).toEqual([]);
    expect(world.clock.timers).toBe(1);
  });

  it('end all leases at their deadlines if none is answered, and leave no timer', async () => {
    const leases = await acquire(1_000, { leaseMs: 3_000 });
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(2_967);
    expect(leases.every((lease) => lease.isHeld())).toBe(true);
    await world.clock.advance(10);
    await settle();
    expect(eventsOf(a, 'lost')).toHaveLength(1_000);
    await world.clock.advance(1_000);
    expect(world.clock.timers).toBe(0);
  });
});
