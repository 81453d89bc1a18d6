import type { BlockedTime } from '../../../../../lib/kernel/events/telemetry.js';
import type { LockOptions } from '../../../../../lib/kernel/api/lock-options.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';
import { track } from '../../../../support/expect/tracked.js';

describe('the contention profile', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { observers: [] });
    b = world.instance('b', { observers: [] });
  });

  const contention = (instance = a) => instance.locks.operators.contention();
  const rows = (instance = a) => contention(instance).blockers.map(({ text }) => text);
  const of = (name: string): LockOptions => ({ group: name, waitMs: Infinity });

  /** Holds the resource for `ms`. */
  async function hold({ locks }: Instance, name: string, ms: number): Promise<void> {
    const lease = await locks.acquire('stock', of(name));
    await world.clock.advance(ms);
    await lease.release();
    await settle();
  }

  it('does not listen before its first use, or if it starts with the application', () => {
    expect(a.locks.observers.wants('acquired')).toBe(false);
    expect(a.locks.observers.onAnswer).toBeUndefined();
    contention();
    expect(a.locks.observers.wants('acquired')).toBe(true);
    const c = world.instance('c', { observers: [], contention: { fromStart: true } });
    expect(c.locks.observers.wants('acquired')).toBe(true);
  });

  it('reports which group of this process has waited for which, even for holds from before its first use', async () => {
    const report = await a.locks.acquire('stock', of('NightlyReport.run'));
    contention();
    const payments = Array.from({ length: 3 }, () => track(a.locks.using('stock', of('Orders.pay'), async () => {})));
    await world.clock.advance(1_000);
    expect(contention().groups).toMatchObject([{ group: 'Orders.pay', waiting: 3, waited: 0 }]);
    await report.release();
    await world.clock.advance(10);
    expect(payments.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(rows()[0]).toBe('Orders.pay waited 3 s in 3 calls for NightlyReport.run');
    const { groups } = contention();
    expect(groups).toMatchObject([
      { group: 'Orders.pay', waiting: 0, waited: 3, wait: { count: 3, maxMs: 1_000 }, hold: { count: 3, maxMs: 0 } },
      { group: 'NightlyReport.run', waiting: 0, waited: 0, wait: { count: 0 }, hold: { count: 1, maxMs: 1_000 } },
    ]);
  });

  it('shares a wait among the holders of this process, one after another', async () => {
    contention();
    const first = hold(a, 'A', 100);
    await settle();
    const second = a.locks.acquire('stock', of('B'));
    const third = track(a.locks.acquire('stock', of('C')));
    await first;
    const lease = await second;
    await world.clock.advance(50);
    await lease.release();
    await settle();
    expect(third.state).toBe('fulfilled');
    expect(rows()).toEqual([
      'B waited 100 ms in 1 call for A',
      'C waited 100 ms in 1 call for A',
      'C waited 50 ms in 1 call for B',
    ]);
  });

  it('names the process of a holder without a label, and follows the holders in the replies of the store', async () => {
    contention();
    const c = world.instance('c', { observers: [] });
    const first = await b.locks.acquire('stock', of('hidden'));
    const next = track(c.locks.acquire('stock', of('hidden')));
    await settle();
    const waiting = track(a.locks.acquire('stock', of('Orders.pay')));
    await world.clock.advance(3_000);
    await first.release();
    await world.clock.advance(4_000);
    await next.value.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(rows()).toEqual([
      'Orders.pay waited 4 s in 1 call for an unknown holder of c',
      'Orders.pay waited 3 s in 1 call for an unknown holder of b',
    ]);
  });

  it.each([
    ['<script>\u202e\u001b[31m\n', '_script____31m_'],
    ['\ud800', '_'],
    ['\u{1d49c}'.repeat(60), '\u{1d49c}'.repeat(60)],
    ['', '_'],
    ['_unknown', '_unknown'],
  ])('uses the label of another process as a group: %j', async (named, holderGroup) => {
    const told: BlockedTime[] = [];
    a.locks.operators.onBlocked((blocked) => told.push(blocked));
    const first = await b.locks.acquire('stock', { label: { group: named } });
    const waiting = track(a.locks.acquire('stock', of('Orders.pay')));
    await world.clock.advance(1_000);
    await first.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(told).toEqual([{ group: 'Orders.pay', holderGroup, waitedMs: 1_000 }]);
  });

  it('follows the polls of a retry strategy, and knows a lease that was polled for', async () => {
    contention();
    const lease = (await a.locks.tryAcquire('stock', { group: 'Polled' }))!;
    const retry = { next: () => 100 };
    const polling = track(a.locks.acquire('stock', { ...of('Poller'), retry }));
    await world.clock.advance(950);
    await lease.release();
    await world.clock.advance(100);
    expect(polling.state).toBe('fulfilled');
    expect(rows()).toEqual(['Poller waited 1 s in 1 call for Polled']);
  });

  it('omits a busy tryAcquire from the times to acquire, which would seem short', async () => {
    contention();
    const lease = await b.locks.acquire('stock');
    for (let i = 0; i < 100; i++) expect(await a.locks.tryAcquire('stock', { group: 'Orders.pay' })).toBeNull();
    expect(contention().groups).toMatchObject([{ group: 'Orders.pay', waited: 0, wait: { count: 0 } }]);
    const waiting = a.locks.acquire('stock', of('Orders.pay'));
    await world.clock.advance(1_000);
    await lease.release();
    await world.clock.advance(10);
    await (await waiting).release();
    const [group] = contention().groups;
    expect(group).toMatchObject({ group: 'Orders.pay', waited: 1, wait: { count: 1, totalMs: 1_000, p50Ms: 750 } });
  });

  it('omits candidates of a leadership: each waits for as long as another leads', async () => {
    contention();
    a.locks.campaign('mailer');
    a.locks.campaign('reports');
    b.locks.campaign('reports');
    await world.clock.advance(3_600_000);
    const seen = contention().groups.map(({ group, wait }) => [group, wait.count]);
    expect(seen.filter(([, count]) => count !== 0)).toEqual([]);
  });

  it('counts each part of a call for several resources once, even if a later one is not granted', async () => {
    contention();
    const first = await b.locks.acquire('x@X', { label: { group: 'Slow' } });
    await b.locks.acquire('y@Y', { label: { group: 'Slower' } });
    const both = track(a.locks.acquire(['x@X', 'y@Y'], { group: 'Orders.pay', waitMs: 5_000 }));
    await world.clock.advance(3_000);
    await first.release();
    await world.clock.advance(3_000);
    expect(both.state).toBe('rejected');
    expect(rows()).toEqual(['Orders.pay waited 3 s in 1 call for Slow', 'Orders.pay waited 2 s in 1 call for Slower']);
    expect(contention().groups).toMatchObject([{ group: 'Orders.pay', wait: { count: 2, totalMs: 5_000 } }]);
  });

  it('reports the call site of acquire, for a sample of the waits', async () => {
    const c = world.instance('c', { observers: [], contention: { fromStart: true, callSiteEvery: 2 } });
    function acquire(): Promise<unknown> {
      return c.locks.withOrigin(acquire, (origin) => c.locks.acquire('stock', of('C'), origin));
    }
    const lease = await b.locks.acquire('stock');
    const waiting = [1, 2, 3, 4, 5].map(async () => {
      const got = (await acquire()) as { release(): Promise<void> };
      await got.release();
    });
    await settle();
    await lease.release();
    await Promise.all(waiting);
    const sites = contention(c).blockers.flatMap(({ callSites }) => callSites);
    expect(sites.reduce((sum, { calls }) => sum + calls, 0)).toBe(3);
    for (const { callSite } of sites) expect(callSite).toMatch(/contention-profile\.test\.ts:\d+:\d+\)$/);
  });

  it.each([{ top: 0 }, { top: 1_001 }, { reset: 1 }, { since: 'today' }])('refuses %p', (options) => {
    expect(() => a.locks.operators.contention(options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option: Object.keys(options)[0] }),
    );
  });
});
