import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';

const MINUTE_MS = 60_000;

describe('a lease that is held for long', () => {
  let world: LockWorld;
  let a: Instance;
  const told = () => eventsOf(a, 'heldLong').map(({ resource, heldMs }) => [resource, heldMs]);
  const holdFor = (ms: number) => () => new Promise<void>((resolve) => world.clock.setTimer(resolve, ms));

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it('by using() is reported once, after a minute', async () => {
    const work = a.locks.using('order:7', undefined, holdFor(10 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS - 1);
    expect(told()).toEqual([]);
    await world.clock.advance(1);
    expect(eventsOf(a, 'heldLong')).toMatchObject([
      { service: 'default', resource: 'order:7', mode: 'exclusive', group: 'order', heldMs: MINUTE_MS },
    ]);
    await world.clock.advance(10 * MINUTE_MS);
    await work;
    expect(told()).toHaveLength(1);
  });

  it('is reported after warnAfterMs of the call, of the module, or never', async () => {
    a = world.instance('a', { observers: [(event) => a.events.push(event)], defaults: { warnAfterMs: 2_000 } });
    const works = [
      a.locks.using('a', undefined, holdFor(MINUTE_MS)),
      a.locks.using('b', { warnAfterMs: 3_000 }, holdFor(MINUTE_MS)),
      a.locks.using('c', { warnAfterMs: Infinity }, holdFor(MINUTE_MS)),
      a.locks.using(['d', 'e'], { warnAfterMs: 4_000, watchdog: false, leaseMs: 10 * MINUTE_MS }, holdFor(MINUTE_MS)),
      a.locks.using('f', undefined, holdFor(1_999)),
    ];
    await world.clock.advance(MINUTE_MS);
    await Promise.all(works);
    expect(told()).toEqual([
      ['a', 2_000],
      ['b', 3_000],
      ['d', 4_000],
      ['e', 4_000],
    ]);
  });

  it('of acquire() is reported if the call requests it; leaderships are not', async () => {
    await a.locks.acquire('a');
    await a.locks.acquire('b', { warnAfterMs: 5_000 });
    a.locks.campaign('mailer');
    await world.clock.advance(10 * MINUTE_MS);
    expect(told()).toEqual([['b', 5_000]]);
  });

  it('has no timer of its own, and is still renewed in time', async () => {
    const lease = await a.locks.acquire('a', { leaseMs: 30_000, warnAfterMs: 5_000 });
    await world.clock.advance(1_000); // the timer that watched over the commands is gone
    expect(world.clock.timers).toBe(1);
    await world.clock.advance(20 * MINUTE_MS - 1_000);
    expect(lease.isHeld()).toBe(true);
    expect(a.store.sent('renew')).toHaveLength(120);
    expect(told()).toEqual([['a', 5_000]]);
  });
});
