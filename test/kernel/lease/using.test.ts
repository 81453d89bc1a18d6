import type { LockError } from '../../../lib/kernel/api/errors.js';
import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

describe.each(['using', 'await using'] as const)('%s', (syntax) => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (syntax === 'using') return a.locks.using('stock', undefined, work);
    await using lease = await a.locks.acquire('stock');
    lease.assertHeld();
    return await work();
  }

  it('returns the result of the work, and releases after it', async () => {
    const result = await run(async () => {
      expect(world.server.isEmpty).toBe(false);
      return 'sold';
    });
    expect(result).toBe('sold');
    expect(world.server.isEmpty).toBe(true);
  });

  it('rethrows the error of the work as the same object, and releases', async () => {
    const error = new RangeError('out of stock');
    await expect(
      run(async () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(world.server.isEmpty).toBe(true);
  });

  it('does not start the work if the process was blocked for longer than the lease before it', async () => {
    // Between the grant and the work: here in an observer.
    a.locks.observers.add(({ type }) => {
      if (type === 'acquired') world.clock.block(LOCK_DEFAULTS.leaseMs);
    });
    let began = false;
    const work = run(async () => void (began = true));
    await expect(work).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed', resource: 'stock' });
    expect(began).toBe(false);
    expect(world.server.isEmpty).toBe(true);
  });

  it('returns the result even if the release fails, which is reported to the observers', async () => {
    a.store.fates.release = failing('refused');
    expect(await run(async () => 'sold')).toBe('sold');
    expect(eventsOf(a, 'releaseFailed')).toMatchObject([{ resource: 'stock', error: { code: 'LOCK_UNAVAILABLE' } }]);
  });

  it('throws the error of the work even if the release fails', async () => {
    a.store.fates.release = failing('refused');
    const error = new RangeError('out of stock');
    await expect(run(() => Promise.reject(error))).rejects.toBe(error);
  });

  it('returns the result after one timeout if Redis does not answer the release', async () => {
    a.store.fates.release = lostOnTheWay;
    const result = track(run(async () => 'sold'));
    await world.clock.advance(999);
    expect(result.state).toBe('pending');
    await world.clock.advance(1);
    expect(result.value).toBe('sold');
  });

  it('releases a lease that was lost during the work', async () => {
    const work = run(async () => {
      a.store.fates.renew = lostOnTheWay;
      await world.clock.advance(40_000);
      return 'sold';
    });
    // `acquire` knows of no work.
    if (syntax === 'using') await expect(work).rejects.toMatchObject({ code: 'LEASE_LOST', value: 'sold' });
    else expect(await work).toBe('sold');
    expect(eventsOf(a, 'lost')).toHaveLength(1);
    expect(eventsOf(a, 'releasedAfterLoss')).toHaveLength(1);
  });
});

describe('using', () => {});

it('using without a function is refused before anything is sent', async () => {
  const { locks, store } = new LockWorld().instance('a');
  await expect(locks.using('stock', {}, undefined as never)).rejects.toThrow('using needs a function');
  expect(store.sent('acquire')).toEqual([]);
});

it.each([
  ['acquire', (locks: Instance['locks'], waitMs: number) => locks.acquire('stock', { waitMs })],
  ['several', (locks: Instance['locks'], waitMs: number) => locks.acquire(['stock', 'till'], { waitMs })],
  ['using', (locks: Instance['locks'], waitMs: number) => locks.using('stock', { waitMs }, () => {})],
  [
    'semaphore',
    (locks: Instance['locks'], waitMs: number) => locks.semaphore('bays', { permits: 1 }).acquire({ waitMs }),
  ],
])('the error of %s has a frame of its caller, and its group', async (_name, call) => {
  const world = new LockWorld();
  const [a, b] = [world.instance('a'), world.instance('b')];
  await b.locks.acquire('stock');
  await b.locks.semaphore('bays', { permits: 1 }).acquire();
  class Shop {
    async payAll(waitMs: number): Promise<void> {
      await call(a.locks, waitMs);
    }
  }
  for (const waitMs of [0, 200]) {
    const paid = track(new Shop().payAll(waitMs));
    await world.clock.advance(waitMs);
    const code = waitMs === 0 ? 'LOCK_BUSY' : 'LOCK_TIMEOUT';
    expect(paid.error).toMatchObject({ code, group: (paid.error as LockError).resource });
    expect((paid.error as Error).stack).toMatch(/ at (async )?Shop\.payAll /);
  }
});

describe('the error of a call that a timer or a reply ends', () => {
  const away = failing('notExecuted', 'not connected');

  /** Calls from a method of an application, and returns the error. */
  async function errorOf(world: LockWorld, call: () => Promise<unknown>, during?: () => void): Promise<LockError> {
    class Shop {
      async payAll(): Promise<void> {
        await call();
      }
    }
    const paid = track(new Shop().payAll());
    await world.clock.advance(1);
    during?.();
    await world.clock.advance(30_000);
    return paid.error as LockError;
  }

  it.each([
    ['time-out', undefined, 'LOCK_TIMEOUT'],
    ['abort', 'abort', 'LOCK_ABORTED'],
    ['outage', 'outage', 'LOCK_UNAVAILABLE'],
  ])('of waitUntilFree has a frame of its caller, and its group: %s', async (_, how, code) => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    await b.locks.acquire('stock', { leaseMs: 60_000 });
    const giveUp = new AbortController();
    if (how === 'outage') a.store.all(away);
    const wait = () => a.locks.watches.waitUntilFree('stock', { waitMs: 1_000, signal: giveUp.signal });
    const error = await errorOf(world, wait, () => how === 'abort' && giveUp.abort());
    expect(error).toMatchObject({ code, group: 'stock' });
    expect(error.stack).toMatch(/ at (async )?Shop\.payAll /);
  });

  it.each(['extend', 'verify', 'release'] as const)('of %s in an outage, too', async (verb) => {
    const world = new LockWorld();
    const a = world.instance('a');
    const lease = await a.locks.acquire('stock', { leaseMs: 60_000, group: 'Shop.pay' });
    a.store.all(away);
    const error = await errorOf(world, () => lease[verb]());
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', group: 'Shop.pay' });
    expect(error.stack).toMatch(/ at (async )?Shop\.payAll /);
  });
});

describe('tryUsing', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('runs the work under the lease, reports that, and releases', async () => {
    const { ran, value } = await a.locks.tryUsing('stock', (lease) => {
      expect(a.locks.current()).toBe(lease);
      return 'sold';
    });
    expect([ran, value]).toEqual([true, 'sold']);
    expect(await a.locks.tryUsing('stock', { mode: 'write' }, async () => {})).toEqual({ ran: true, value: undefined });
    expect(world.server.isEmpty).toBe(true);
  });

  it('does not run the work if the resource is busy', async () => {
    await b.locks.acquire('stock');
    let ran = false;
    const work = () => (ran = true);
    const calls = [undefined, { waitMs: 200 }].map((options) => track(a.locks.tryUsing('stock', options, work)));
    await world.clock.advance(200);
    expect(calls.map(({ value }) => value)).toEqual([{ ran: false }, { ran: false }]);
    expect(ran).toBe(false);
  });

  it('passes on errors of the work, even its own busy error', async () => {
    await b.locks.acquire('other');
    const nested = a.locks.tryUsing('stock', () => a.locks.acquire('other', { waitMs: 0 }));
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_BUSY', resource: 'other' });
    expect(world.server.members('stock')).toEqual([]);
  });

  it.each([[undefined], [{}, undefined], [() => {}, {}], [() => {}, () => {}]])(
    'refuses %p before anything is sent',
    async (...given) => {
      const call = a.locks.tryUsing('stock', ...(given as unknown as [undefined, () => void]));
      await expect(call).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
      expect(a.store.commands).toEqual([]);
    },
  );
});
