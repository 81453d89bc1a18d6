import type { LockTimeoutError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { track, type Tracked } from '../../support/expect/tracked.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

const HELP = 'docs/guide/several-resources.md#what-can-still-deadlock';

describe('a call that times out inside of work under a lease', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  /** Takes them one inside the other. */
  const nested = (names: readonly string[], options: LockOptions = {}, { locks } = a): Promise<unknown> => {
    const [name, ...rest] = names;
    return locks.using(name!, options, async () => {
      await settle();
      if (rest.length > 0) await nested(rest, options, { locks } as Instance);
    });
  };
  const errorOf = ({ error }: Tracked<unknown>) => error as LockTimeoutError;

  it('names its own locks, and that the holder may wait for them', async () => {
    const b = world.instance('b');
    await b.locks.acquire('account:y');
    const call = track(nested(['account:x', 'account:y'], { waitMs: 4_000 }));
    await world.clock.advance(10);
    await world.clock.advance(4_000);
    expect(errorOf(call).heldByCaller).toEqual({ resources: ['account:x'] });
    expect(errorOf(call).message).toBe(
      '"account:y" is held by b for 4 s; waited 4 s (1st in line). This call also holds "account:x". ' +
        `If the holder waits for that, it is a deadlock: see ${HELP}. Otherwise raise waitMs, hold the lock for ` +
        'less time, or try again later.',
    );
  });

  it('reports a deadlock to both calls if the holder is a waiting call of its process', async () => {
    const calls = [
      track(nested(['account:x', 'account:y'], { waitMs: 4_000 })),
      track(nested(['account:y', 'account:x'], { waitMs: 4_000 })),
    ];
    await world.clock.advance(10);
    await world.clock.advance(4_000);
    const error = errorOf(calls[0]!);
    expect(error.message).toMatch(
      new RegExp(
        '^"account:y" is held by another call of this process for 4 s; waited 4 s behind other calls of this process\\. This ' +
          'call also holds "account:x", and the holder waits for that: a deadlock, which a longer wait cannot resolve\\. This ' +
          'call holds "account:x" and wants "account:y" \\(.*deadlocks\\.test\\.ts:\\d+:\\d+\\)?\\); another call of this process ' +
          'holds "account:y" and wants "account:x" \\(.*deadlocks\\.test\\.ts:\\d+:\\d+\\)?\\)\\. Take all of them in one call, ' +
          `outside: \\["account:x", "account:y"\\]\\. See ${HELP}\\.$`,
      ),
    );
    const site = expect.stringContaining('deadlocks.test.ts');
    const of = { instanceId: 'a', isThisProcess: true, group: 'account', callSite: site };
    const deadlock = [
      { ...of, holds: 'account:x', wants: 'account:y' },
      { ...of, holds: 'account:y', wants: 'account:x' },
    ];
    expect(error.heldByCaller).toEqual({ resources: ['account:x'], deadlock });
    expect(error.cause).toMatchObject({ name: 'Deadlock', calls: deadlock });
    expect((error.cause as Error).message).toMatch(
      /^"a" holds "account:x" and wants "account:y" .*; another call of this/,
    );
    expect(errorOf(calls[1]!).heldByCaller).toEqual({
      resources: ['account:y'],
      deadlock: deadlock.toReversed(),
    });
  });

  it('omits a lease that has expired, or that the call did not take inside of', async () => {
    const b = world.instance('b');
    await b.locks.acquire('y');
    await a.locks.acquire('x');
    const outside = track(a.locks.acquire('y', { waitMs: 1_000 }));
    const fixed = track(
      a.locks.using('w', { watchdog: false, leaseMs: 500 }, () => a.locks.acquire('y', { waitMs: 1_000 })),
    );
    await world.clock.advance(1_100);
    for (const call of [outside, fixed]) expect(errorOf(call).message).not.toContain('This call holds');
  });

  it('reports it for several resources, too', async () => {
    const b = world.instance('b');
    await b.locks.acquire('z');
    const call = track(a.locks.using('x', {}, () => a.locks.acquire(['y', 'z'], { waitMs: 2_000 })));
    await world.clock.advance(2_100);
    expect(errorOf(call).code).toBe('LOCK_TIMEOUT');
    expect(errorOf(call).heldByCaller).toEqual({ resources: ['x'] });
  });

  it('counts the locks of a call for several resources, though it is not nested in another one', async () => {
    void nested(['y', 'x'], { waitMs: 9_000 });
    const composite = track(a.locks.acquire(['x', 'y'], { waitMs: 4_000 }));
    await world.clock.advance(5_000);
    expect(errorOf(composite).heldByCaller).toEqual({ resources: ['x'], deadlock: expect.any(Array) });
  });

  it('reports it for a call that polls by a retry strategy', async () => {
    const retry = { next: () => 100 };
    const polling = track(nested(['x', 'y'], { waitMs: 3_000, retry }));
    void nested(['y', 'x'], { waitMs: 9_000 });
    await world.clock.advance(4_000);
    expect(errorOf(polling).heldByCaller).toEqual({ resources: ['x'], deadlock: expect.any(Array) });
  });

  it('reports no deadlock for permits of a semaphore: other holders may release theirs', async () => {
    const permits = (work: () => Promise<unknown>) =>
      a.locks.semaphore('s', { permits: 1 }).using({ waitMs: 2_000 }, work);
    const calls = [
      track(permits(() => a.locks.acquire('x', { waitMs: 2_000 }))),
      track(a.locks.using('x', {}, () => permits(async () => {}))),
    ];
    await world.clock.advance(3_000);
    expect(calls.map((call) => errorOf(call).heldByCaller)).toEqual([{ resources: ['s'] }, { resources: ['x'] }]);
  });
});
