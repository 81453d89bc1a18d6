import { PassThrough, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Observable, of } from 'rxjs';
import type { LockError } from '../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { LOCK_DEFAULTS, type LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LockObservers } from '../../../lib/kernel/events/observers.js';
import { ActiveHolds } from '../../../lib/kernel/holding/lock-context.js';
import type { Watchdog } from '../../../lib/kernel/holding/watchdog.js';
import { Leaks } from '../../../lib/kernel/lease/leaks.js';
import { Observation } from '../../../lib/kernel/tracing/observation.js';
import { callSiteOf } from '../../../lib/kernel/util/call-site.js';
import { gate, track } from '../../support/expect/tracked.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { Fleet } from '../../support/world/singleton-fleet.js';

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

type Options = Pick<LockOptions, 'onLost'> | undefined;
type Work = (lease: Lease) => unknown;

describe.each<[string, (a: Instance, options: Options, work: Work) => Promise<unknown>]>([
  ['using', ({ locks }, options, work) => locks.using('stock', options, work)],
  ['using of several', ({ locks }, options, work) => locks.using(['stock', 'till'], options, work)],
  ['using in a mode', ({ locks }, options, work) => locks.using('stock', { ...options, mode: 'write' }, work)],
  ['tryUsing', async ({ locks }, options, work) => (await locks.tryUsing('stock', options, work)).value],
  ['semaphore.using', ({ locks }, options, work) => locks.semaphore('stock', { permits: 2 }).using(options, work)],
  [
    'semaphore.tryUsing',
    async ({ locks }, options, work) => (await locks.semaphore('stock', { permits: 2 }).tryUsing(options, work)).value,
  ],
])('the work %s, if the lease is lost before it settles', (_, call) => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  /** Blocks the event loop for longer than the lease. */
  const lose = (): void => world.clock.block(LOCK_DEFAULTS.leaseMs);

  it('rejects with the loss, which has the result of the finished work', async () => {
    const work = call(a, undefined, async () => {
      lose();
      return 'sold';
    });
    const error = await work.catch((thrown: unknown) => thrown as LeaseLostError);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed', resource: 'stock', group: 'stock' });
    expect(error).toMatchObject({ workFinished: true, value: 'sold' });
    expect((error as Error).message).toMatch(
      /no longer held: .*The work still ran to its end.*result is in error\.value\./,
    );
    // Results may hold secrets, and errors are logged.
    expect(inspect(error) + JSON.stringify(error)).not.toContain('sold');
  });

  it("resolves to the result with onLost: 'ignore'", async () => {
    const work = call(a, { onLost: 'ignore' }, async (lease) => {
      lose();
      return `sold, ${(lease.signal.reason as LeaseLostError).code}`;
    });
    expect(await work).toBe('sold, LEASE_LOST');
  });

  it('rejects with an error of the work itself', async () => {
    const failure = new RangeError('out of stock');
    const work = call(a, undefined, () => {
      lose();
      throw failure;
    });
    await expect(work).rejects.toBe(failure);
  });

  it.each<[string, (signal: AbortSignal) => unknown]>([
    ['the reason of the signal', (signal) => signal.throwIfAborted()],
    ['the AbortError of a Node API', (signal) => sleep(1, undefined, { signal })],
    [
      'an AbortError without a cause, as of axios',
      () => Promise.reject(Object.assign(new Error('canceled'), { name: 'CanceledError' })),
    ],
  ])('rejects with the loss, not with %s', async (_error, abort) => {
    for (const options of [undefined, { onLost: 'ignore' }] as const) {
      const work = call(a, options, (lease) => {
        lose();
        return abort(lease.signal);
      });
      await expect(work).rejects.toMatchObject({ code: 'LEASE_LOST', workFinished: false });
    }
  });

  it('shows the code that called it in the stack', async () => {
    class Shop {
      async sell(abort: boolean): Promise<void> {
        await call(a, undefined, (lease) => {
          lose();
          if (abort) lease.signal.throwIfAborted();
        });
      }
    }
    for (const abort of [true, false]) {
      const error = await new Shop().sell(abort).catch((thrown: unknown) => thrown as Error);
      expect((error as Error).stack).toMatch(/ at (async )?Shop\.sell /);
      expect((error as Error).stack).toContain((error as Error).message);
    }
  });

  it('resolves if the lease ends after the work has settled, and if its release is not confirmed', async () => {
    a.store.fates.release = failing('refused');
    a.locks.observers.add(({ type }) => {
      if (type === 'releaseFailed') lose();
    });
    expect(await call(a, undefined, () => 'sold')).toBe('sold');
  });

  it.each([
    ['resolves if the lock is still in Redis, where no other process can have it', 5_000, 'fulfilled'],
    ['rejects if the lock has expired', LOCK_DEFAULTS.leaseMs, 'rejected'],
  ])('after a shutdown, %s', async (_outcome, lateMs, state) => {
    const end = gate();
    const work = track(call(a, undefined, () => end.opened));
    await world.clock.advance(0);
    void a.locks.shutdown(0);
    await world.clock.advance(lateMs);
    end.open();
    await world.clock.advance(1_000);
    expect(work.state).toBe(state);
    if (state === 'rejected') expect(work.error).toMatchObject({ code: 'LEASE_LOST', reason: 'shutdown' });
  });

  it('resolves if the work itself has released the lease', async () => {
    const work = call(a, undefined, async (lease) => {
      await lease.release();
      lose();
      return 'sold';
    });
    expect(await work).toBe('sold');
  });
});

it('an invalid onLost is refused', async () => {
  const { locks } = new LockWorld().instance('a');
  await expect(locks.using('stock', { onLost: 'abort' as never }, () => {})).rejects.toThrow(
    "onLost must be one of 'throw', 'ignore', not \"abort\".",
  );
});

describe('work that has not ended', () => {
  let runs = 0;
  const rows = (): Readable => Readable.from(['row']);

  /** Results whose work runs when something reads them, each with its name in the message. */
  const UNFINISHED: [string, () => object][] = [
    ['an Observable', () => new Observable(() => void runs++)],
    [
      'a generator',
      () =>
        (function* () {
          yield runs++;
        })(),
    ],
    [
      'a generator',
      () =>
        (async function* () {
          yield runs++;
        })(),
    ],
    ['an async iterator', () => ({ [Symbol.asyncIterator]: () => ({ next: async () => ({ value: runs++ }) }) })],
    ['a stream', rows],
    ['a stream', () => Readable.toWeb(rows())],
    ['a stream', () => new PassThrough()],
    ['a stream', () => new Writable({ write: (_chunk, _encoding, done) => done() })],
    // The StreamableFile of Nest.
    ['a stream', () => ({ getStream: rows })],
  ];

  const ended = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() }).end();

  async function read(): Promise<Readable> {
    const stream = rows().resume();
    await finished(stream);
    return stream;
  }

  /** Finished work, values that are no work, and properties that may be read without the lock. */
  const FINISHED: [string, () => unknown][] = [
    ['nothing', () => undefined],
    ['an array', () => [1]],
    ['a writable stream that has ended, such as the response of Express', ended],
    ['a readable stream that has been read', read],
    ['a response of fetch, whose request has been answered', () => new Response('ok')],
    ['an Observable in an object', () => ({ later: of(1) })],
    [
      'a query that is awaited, and could be iterated instead',
      () => Object.assign(Promise.resolve('rows'), { [Symbol.asyncIterator]: () => {} }),
    ],
  ];

  const CALLS: [string, string, (a: Instance, work: () => unknown) => Promise<unknown>][] = [
    ['using', 'the lock of "stock"', ({ locks }, work) => locks.using('stock', undefined, work)],
    ['tryUsing', 'the lock of "stock"', ({ locks }, work) => locks.tryUsing('stock', work)],
    ['a semaphore', 'the lock of "stock"', ({ locks }, work) => locks.semaphore('stock', { permits: 1 }).using(work)],
    [
      'a leader',
      'the leadership "mailer"',
      async ({ locks }, work) => {
        const leadership = locks.campaign('mailer');
        await leadership.whenElected();
        return leadership.run(work);
      },
    ],
  ];

  beforeEach(() => (runs = 0));

  describe.each(CALLS)('the work of %s', (_call, lock, call) => {
    it.each(UNFINISHED)('is refused by name if it returns %s, which would run without the lock', async (kind, make) => {
      const a = new LockWorld().instance('a');
      const results: object[] = [];
      const work = call(a, async () => {
        results.push(make());
        return results[0];
      });
      await expect(work).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
      await expect(work).rejects.toThrow(`The work returned ${kind} under ${lock}`);
      for (const result of results) if (result instanceof Readable) expect(result.destroyed).toBe(true);
      expect(runs).toBe(0);
    });

    it.each(FINISHED)('may return %s', async (_kind, make) => {
      const a = new LockWorld().instance('a');
      await expect(call(a, make)).resolves.not.toThrow();
    });
  });

  it.each(UNFINISHED)('a job that returns %s has failed', async (kind, make) => {
    const fleet = new Fleet();
    const [anna] = fleet.members('anna');
    const call = anna!.run('09:00', async () => make());
    await fleet.clock.advance(1_000);
    expect(call.error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
    expect((call.error as Error).message).toMatch(`The work returned ${kind} under the job`);
    expect(eventsOf(anna!.instance, 'tickFinished')).toMatchObject([{ outcome: 'error' }]);
    expect(runs).toBe(0);
  });

  it.each(UNFINISHED)('a callback of a campaign that returns %s has failed', async (kind, make) => {
    const a = new LockWorld().instance('a');
    await a.locks.campaign('mailer', { onElected: make }).whenElected();
    await new Promise((resolve) => setImmediate(resolve));
    expect(eventsOf(a, 'callbackFailed')).toMatchObject([{ error: { code: 'INVALID_LOCK_OPTIONS' } }]);
    expect(String(eventsOf(a, 'callbackFailed')[0]!.error)).toContain(`onElected returned ${kind} under`);
  });
});

function leaksBy(clock: FakeClock): Leaks {
  const observers = new LockObservers();
  const observation = new Observation(observers, clock);
  return new Leaks(new ActiveHolds(), observers, clock, {} as Watchdog, 'warn', observation);
}

describe('the call site of a lease', () => {
  it('is recorded for a limited number of calls in half a second, because a stack is expensive', async () => {
    const clock = new FakeClock();
    const leaks = leaksBy(clock);
    const acquire = () => leaks.withOrigin(acquire, (origin) => origin).stack;
    const caller = (): boolean => acquire() !== undefined;
    const recorded = () => Array.from({ length: 250 }, caller).filter(Boolean).length;
    expect(recorded()).toBe(100);
    await clock.advance(499);
    expect(recorded()).toBe(0);
    await clock.advance(1);
    expect(recorded()).toBe(100);
    leaks.stop();
    expect(clock.timers).toBe(0);
  });

  it('is recorded after the command is sent, because the store is at work by then', () => {
    const clock = new FakeClock();
    const leaks = leaksBy(clock);
    let stackAtCommand: string | undefined = 'no command was sent';
    const acquire = () =>
      leaks.withOrigin(acquire, (origin) => {
        stackAtCommand = origin.stack;
        expect(clock.timers).toBe(0);
        return origin;
      });
    const origin = acquire();
    expect(stackAtCommand).toBeUndefined();
    expect(callSiteOf(origin)).toMatch(/using\.test\.ts:\d+:\d+\)$/);
    leaks.stop();
  });
});
