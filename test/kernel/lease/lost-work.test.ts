import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

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
      /no longer held: .*The work still ran to its end.*result is the value of this error/,
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
