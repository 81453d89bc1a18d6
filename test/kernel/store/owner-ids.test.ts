import { inspect } from 'node:util';
import type { LockError } from '../../../lib/kernel/api/errors.js';
import { createOwnerId } from '../../../lib/kernel/store/ask.js';
import { SystemRandom } from '../../../lib/kernel/util/clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';

/** Owner ids end with a random part that only their id may know. In these tests it begins with "secret". */
describe('owner ids', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  /** Everything a logger could print of it: message, stack, properties, causes. */
  function printed(value: unknown): string {
    return inspect(value, { depth: 10, showHidden: true }) + JSON.stringify(value);
  }

  async function errorOf(promise: Promise<unknown>): Promise<LockError> {
    return promise.then(
      () => Promise.reject(new Error('it was expected to fail')),
      (error: LockError) => error,
    );
  }

  it('are captured by these tests', async () => {
    await a.locks.acquire('stock');
    expect(a.store.sent('acquire')[0]!.owner).toMatch(/^a\/\d+\/secret\w+/);
  });

  it('are in no error', async () => {
    const lease = await a.locks.acquire('stock');
    const errors = [
      await errorOf(b.locks.acquire('stock', { waitMs: 0 })),
      await errorOf(b.locks.acquire('stock', { signal: AbortSignal.abort() })),
    ];
    a.store.all(failing('refused', 'NOPERM'));
    errors.push(await errorOf(lease.verify()), await errorOf(lease.extend()), await errorOf(lease.release()));
    errors.push(await errorOf(a.locks.acquire('other')), await errorOf(a.locks.inspect('stock')));
    await a.locks.shutdown(0);
    errors.push(await errorOf(a.locks.acquire('stock')));
    expect(errors.map(({ code }) => code)).toEqual([
      'LOCK_BUSY',
      'LOCK_ABORTED',
      'LOCK_UNAVAILABLE',
      'LOCK_UNAVAILABLE',
      'LOCK_UNAVAILABLE',
      'LOCK_UNAVAILABLE',
      'LOCK_UNAVAILABLE',
      'LOCK_SHUTDOWN',
    ]);
    for (const error of errors) expect(printed(error)).not.toContain('secret');
  });

  it('are in no event, and not in the reason of a loss', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
    a.store.next('renew', failing('unknown'));
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(3_000);
    await lease.release();
    const second = await a.locks.acquire('stock');
    await second.release();
    expect(new Set(a.events.map(({ type }) => type))).toEqual(
      new Set(['acquired', 'renewalFailed', 'lost', 'releasedAfterLoss', 'released']),
    );
    expect(printed(a.events)).not.toContain('secret');
    expect(printed(lease.signal.reason)).not.toContain('secret');
  });

  it('are not in the result of inspect', async () => {
    await a.locks.acquire('stock', { mode: 'reentrant' });
    expect(printed(await b.locks.inspect('stock'))).not.toContain('secret');
  });

  it('have 72 random bits', () => {
    const ids = Array.from({ length: 1_000 }, () => createOwnerId('a/b', new SystemRandom()));
    expect(new Set(ids).size).toBe(1_000);
    for (const id of ids) expect(id).toMatch(/^a\/b\/[\w-]{12}$/);
  });
});
