import { LockAbortedError } from '../../../lib/kernel/api/errors.js';
import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import { EventCounts } from '../../support/simulation/event-counts.js';
import { track } from '../../support/expect/tracked.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { brokenAfter } from '../../support/world/scripted-store.js';

/** The simulation of contention has every other ending, in any order. These are the endings by name. */
describe('a metric from event counts returns to 0', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let counts: EventCounts;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
    counts = new EventCounts(b.locks.observers);
  });

  function expectBegun(begun: EventCounts['begun']): void {
    expect({ begun: counts.begun, left: counts.left, wrong: counts.wrong }).toEqual({ begun, left: {}, wrong: [] });
  }

  it('after polling that ends because the retry strategy of the user throws', async () => {
    await a.locks.acquire('order:7');
    const fault = new TypeError('no such setting');
    const next = ({ attempt }: { attempt: number }): number => {
      if (attempt === 1) return 50;
      throw fault;
    };
    const polling = track(b.locks.acquire('order:7', { retry: { next } }));
    await world.clock.advance(100);
    expect(polling.error).toBe(fault);
    const [told] = b.events.filter(({ type }) => type === 'notAcquired');
    expect(told).toMatchObject({ resource: 'order:7', hasWaited: true, waitedMs: 50 });
    expect(told).toMatchObject({ error: { code: 'INVALID_LOCK_OPTIONS', option: 'retry', cause: fault } });
    expectBegun({ held: 0, waiting: 1 });
  });

  it.each<[string, unknown]>([
    ['an error', new TypeError('no such setting')],
    ['a text', 'no such setting'],
    ['nothing', undefined],
    ['a frozen object', Object.freeze({})],
    ['an object that cannot be read', hostile()],
    ['an error of a lock', new LockAbortedError('order:1', undefined)],
  ])('after polling for several resources whose retry strategy throws %s', async (_, fault) => {
    await a.locks.acquire('b:2');
    const next = ({ attempt }: { attempt: number }): number => {
      if (attempt === 1) return 50;
      throw fault;
    };
    const retry = { next };
    const polling = [
      b.locks.acquire(['a:1', 'b:2', 'c:3'], { retry }),
      b.locks.acquire('b:2', { retry }),
      b.locks.using('b:2', { retry }, () => {}),
    ].map((call) =>
      call.then(
        () => false,
        (thrown: unknown) => thrown === fault,
      ),
    );
    await world.clock.advance(100);
    expect(await Promise.all(polling)).toEqual([true, true, true]);
    const told = b.events.flatMap((event) => (event.type === 'notAcquired' ? [event] : []));
    const resources = told.map((event) => event.resources.join());
    expect(resources.toSorted()).toEqual(['a:1,b:2,c:3', 'b:2', 'b:2']);
    for (const event of told)
      expect(event).toMatchObject({ resource: 'b:2', group: 'b', hasWaited: true, waitedMs: 50 });
    expectBegun({ held: 1, waiting: 3 });
  });

  it('after a lost lease, even if its release fails then, and after an unconfirmed release', async () => {
    const lost = await b.locks.acquire('order:7', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(1_000);
    b.store.fates.release = brokenAfter;
    await lost.release().catch(() => {});
    const unconfirmed = await b.locks.acquire('order:8');
    await expect(unconfirmed.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(b.events.filter(({ type }) => type === 'releaseFailed')).toMatchObject([
      { resource: 'order:8', isEnd: true },
    ]);
    expectBegun({ held: 2, waiting: 0 });
  });

  it('after leases that are passed on in memory, by their events', async () => {
    const leases = Array.from({ length: 5 }, () => track(b.locks.acquire('order:7')));
    for (const lease of leases) {
      await world.clock.advance(1);
      await lease.value.release();
    }
    const acquired = b.events.flatMap((event) => (event.type === 'acquired' ? [event] : []));
    expect(acquired.map(({ handedOn }) => handedOn)).toEqual([false, true, true, true, true]);
    expect(acquired.map(({ hasWaited }) => hasWaited)).toEqual([false, true, true, true, true]);
    expectBegun({ held: 5, waiting: 4 });
  });

  it('at a shutdown, also of a fixed lease that nothing renews', async () => {
    await b.locks.acquire('order:7');
    const fixed = await b.locks.acquire('order:8', { watchdog: false });
    const closing = b.locks.shutdown(0);
    await world.clock.advance(LOCK_DEFAULTS.attemptTimeoutMs);
    await closing;
    expect(fixed.isHeld()).toBe(true);
    expect(counts.left).toEqual({});
    await fixed.release().catch(() => {});
    expectBegun({ held: 2, waiting: 0 });
  });

  it('after leaderships, whose candidates do not count as waiting', async () => {
    a.locks.campaign('mailer');
    const campaign = b.locks.campaign('mailer');
    await world.clock.advance(60_000);
    expect(counts.begun).toEqual({ held: 0, waiting: 0 });
    await a.locks.leadership('mailer')!.resign();
    await world.clock.advance(1_000);
    expect(counts.left).toEqual({ 'held default exclusive leader:mailer': 1 });
    await campaign.resign();
    expectBegun({ held: 1, waiting: 0 });
  });
});

function hostile(): object {
  const trap = (): never => {
    throw new Error('this object cannot be read');
  };
  return new Proxy({}, { get: trap, getPrototypeOf: () => null });
}
