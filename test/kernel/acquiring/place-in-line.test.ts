import { LockTimeoutError } from '../../../lib/kernel/api/errors.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { ordinal } from '../../../lib/kernel/util/plurals.js';
import { track } from '../../support/expect/tracked.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';

describe('the place in line', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = [world.instance('a'), world.instance('b'), world.instance('c')];
  });

  it('is in the event of a call that begins to wait, and in its error', async () => {
    await a.locks.acquire('stock');
    const first = track(b.locks.acquire('stock', { waitMs: 500 }));
    await world.clock.advance(1);
    const second = track(c.locks.acquire('stock', { waitMs: 400 }));
    await world.clock.advance(500);
    expect(eventsOf(b, 'waiting')).toMatchObject([{ place: 1 }]);
    expect(eventsOf(c, 'waiting')).toMatchObject([{ place: 2 }]);
    expect(first.error).toMatchObject({ code: 'LOCK_TIMEOUT', place: 1 });
    expect(second.error).toMatchObject({ code: 'LOCK_TIMEOUT', place: 2 });
    expect((second.error as Error).message).toMatch(
      /; waited 400 ms \(2nd in line(, asked \d times)?\)\. Raise waitMs/,
    );
  });

  it('comes from the last reply that had one', async () => {
    await a.locks.acquire('stock');
    const first = track(b.locks.acquire('stock', { waitMs: 500 }));
    await world.clock.advance(1);
    const second = track(c.locks.acquire('stock', { waitMs: 6_000 }));
    await world.clock.advance(6_000);
    expect(first.error).toMatchObject({ place: 1 });
    expect(eventsOf(c, 'waiting')).toMatchObject([{ place: 2 }]);
    expect(eventsOf(c, 'waitingLong')).toMatchObject([{ place: 1 }]);
    expect(second.error).toMatchObject({ place: 1 });
  });

  it('is not announced for calls behind it, until one of them is there', async () => {
    await a.locks.acquire('stock');
    void track(b.locks.acquire('stock', { waitMs: 60_000 }));
    await world.clock.advance(1);
    const first = track(c.locks.acquire('stock', { waitMs: 1_000 }));
    const second = track(c.locks.acquire('stock', { waitMs: 500 }));
    const third = track(c.locks.acquire('stock', { waitMs: 3_000 }));
    await world.clock.advance(3_000);
    expect(second.error).not.toHaveProperty('place');
    expect((second.error as Error).message).not.toContain('in line');
    expect(first.error).toMatchObject({ place: 2 });
    expect(third.error).toMatchObject({ place: 2 });
    const told = eventsOf(c, 'waiting').map((event) => ('place' in event ? event.place : 'none'));
    expect(told).toEqual(expect.arrayContaining([2, 'none', 'none']));
  });

  it('is unknown behind a holder of this process, and for a call that polls', async () => {
    await a.locks.acquire('stock');
    const behind = track(a.locks.acquire('stock', { waitMs: 300 }));
    const polling = track(b.locks.acquire('stock', { waitMs: 300, retry: fixedInterval({ intervalMs: 100 }) }));
    await world.clock.advance(400);
    for (const { error } of [behind, polling]) {
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).not.toHaveProperty('place');
    }
    for (const event of [...eventsOf(a, 'waiting'), ...eventsOf(b, 'waiting')])
      expect(event).not.toHaveProperty('place');
  });

  it.each([
    [1, '1st'],
    [2, '2nd'],
    [3, '3rd'],
    [4, '4th'],
    [10, '10th'],
    [11, '11th'],
    [12, '12th'],
    [13, '13th'],
    [20, '20th'],
    [21, '21st'],
    [101, '101st'],
    [111, '111th'],
    [112, '112th'],
    [122, '122nd'],
    [1_003, '1003rd'],
    [1_013, '1013th'],
  ])('%d is called %s', (place, name) => {
    expect(ordinal(place)).toBe(name);
  });
});
