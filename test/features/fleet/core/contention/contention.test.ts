import fc from 'fast-check';
import { Blockers, type BlockingGroup } from '../../../../../lib/features/fleet/core/contention/blockers.js';
import { DurationHistogram } from '../../../../../lib/features/fleet/core/contention/duration-histogram.js';
import { WaitTimeline } from '../../../../../lib/features/fleet/core/contention/wait-timeline.js';
import type { LockOptions } from '../../../../../lib/kernel/api/lock-options.js';
import type { BlockedTime } from '../../../../../lib/kernel/events/telemetry.js';
import { DURATION_BUCKETS_MS } from '../../../../../lib/kernel/util/durations.js';
import { track } from '../../../../support/expect/tracked.js';
import { anyCharacter } from '../../../../support/names/hostile-names.js';
import { runs } from '../../../../support/simulation/runs.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';

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
    expect(rows()[0]).toBe('3 calls of Orders.pay waited 3 s in total for NightlyReport.run');
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
      '1 call of B waited 100 ms in total for A',
      '1 call of C waited 100 ms in total for A',
      '1 call of C waited 50 ms in total for B',
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
      '1 call of Orders.pay waited 4 s in total for an unknown holder on c',
      '1 call of Orders.pay waited 3 s in total for an unknown holder on b',
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
    expect(rows()).toEqual(['1 call of Poller waited 1 s in total for Polled']);
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
    expect(rows()).toEqual([
      '1 call of Orders.pay waited 3 s in total for Slow',
      '1 call of Orders.pay waited 2 s in total for Slower',
    ]);
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
    for (const { callSite } of sites) expect(callSite).toMatch(/contention\.test\.ts:\d+:\d+\)$/);
  });

  it.each([{ top: 0 }, { top: 1_001 }, { reset: 1 }, { since: 'today' }])('refuses %p', (options) => {
    expect(() => a.locks.operators.contention(options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option: Object.keys(options)[0] }),
    );
  });
});

const REPORT: BlockingGroup = { group: 'NightlyReport.run' };

describe('the waits between groups', () => {
  it('add up for each pair, the longest first', () => {
    const blockers = new Blockers();
    blockers.add('Orders.pay', [[{ group: 'Orders.pay' }, 40]]);
    for (let call = 0; call < 41; call++) blockers.add('Orders.pay', [[REPORT, 78]]);
    expect(blockers.top(10).map(({ text }) => text)).toEqual([
      '41 calls of Orders.pay waited 3.2 s in total for NightlyReport.run',
      '1 call of Orders.pay waited 40 ms in total for Orders.pay',
    ]);
    expect(blockers.top(1)).toEqual([
      expect.objectContaining({ waiter: 'Orders.pay', holder: 'NightlyReport.run', waitedMs: 3_198, calls: 41 }),
    ]);
  });

  it('name the process of a holder whose group is unknown', () => {
    const blockers = new Blockers();
    blockers.add('Orders.pay', [[{ group: '_unknown', instanceId: 'shop-2:77' }, 5]]);
    blockers.add('Orders.pay', [[{ group: '_unknown' }, 1]]);
    blockers.add('Orders.pay', [[{ group: 'instance shop-2:77' }, 0]]);
    expect(blockers.top(9).map(({ text, instanceId }) => [text, instanceId])).toEqual([
      ['1 call of Orders.pay waited 5 ms in total for an unknown holder on shop-2:77', 'shop-2:77'],
      ['1 call of Orders.pay waited 1 ms in total for an unknown holder', undefined],
      ['1 call of Orders.pay waited 0 ms in total for "instance shop-2:77"', undefined],
    ]);
  });

  it('count a call once for a group, however many of its holders it has waited for', () => {
    const blockers = new Blockers();
    blockers.add('a', [
      [{ group: '_unknown', instanceId: 'x' }, 5],
      [REPORT, 3],
      [REPORT, 4],
    ]);
    expect(blockers.top(9)).toMatchObject([
      { holder: 'NightlyReport.run', waitedMs: 7, calls: 1 },
      { holder: '_unknown', waitedMs: 5, calls: 1 },
    ]);
  });

  it('have hostile names escaped', () => {
    const blockers = new Blockers();
    blockers.add('<b>\u202e', [[{ group: '_unknown', instanceId: 'a\nb' }, 1]]);
    expect(blockers.top(1)[0]!.text).toBe(
      String.raw`1 call of "<b>\u202e" waited 1 ms in total for an unknown holder on "a\nb"`,
    );
  });

  it('leave room for the groups of this process, whatever names other processes use', () => {
    const blockers = new Blockers();
    for (let index = 0; index < 500; index++) blockers.add('a', [[{ group: `theirs ${index}`, isForeign: true }, 1]]);
    for (let index = 0; index < 100; index++) blockers.add('a', [[{ group: `ours ${index}` }, 1]]);
    const holders = blockers.top(Infinity).map(({ holder }) => holder);
    expect(holders.filter((holder) => holder.startsWith('theirs'))).toHaveLength(100);
    expect(holders.filter((holder) => holder.startsWith('ours'))).toHaveLength(100);
    expect(blockers.top(1)).toMatchObject([
      { holder: '_other', waitedMs: 400, calls: 400, text: '400 calls of a waited 400 ms in total for other holders' },
    ]);
  });

  it('distinguish 200 groups and 200 unknown processes, and lose no time', () => {
    const name = fc.string({ maxLength: 3, unit: anyCharacter });
    const holder = fc.oneof(
      fc.record({ group: name }),
      fc.record({ group: fc.constant('_unknown'), instanceId: fc.option(name, { nil: undefined }) }),
    );
    const waits = fc.array(fc.tuple(name, holder, fc.nat(1_000)), { maxLength: 1_000, size: 'max' });
    fc.assert(
      fc.property(waits, (all) => {
        const blockers = new Blockers();
        let totalMs = 0;
        for (const [waiter, key, ms] of all) {
          blockers.add(waiter, [[key, ms]]);
          totalMs += ms;
        }
        const rows = blockers.top(Infinity);
        expect(new Set(rows.map((row) => row.waiter)).size).toBeLessThanOrEqual(201);
        expect(new Set(rows.map((row) => row.holder)).size).toBeLessThanOrEqual(202);
        expect(new Set(rows.map((row) => row.instanceId)).size).toBeLessThanOrEqual(201);
        expect(rows.reduce((sum, row) => sum + row.waitedMs, 0)).toBe(totalMs);
        expect(rows.reduce((sum, row) => sum + row.calls, 0)).toBe(all.length);
      }),
      { numRuns: runs(20) },
    );
  });
});

describe('the wait times of one resource', () => {
  const A: BlockingGroup = { group: 'A' };
  const B: BlockingGroup = { group: 'B' };
  const UNKNOWN: BlockingGroup = { group: '_unknown' };

  it('are shared among its holders in that time', () => {
    const line = new WaitTimeline();
    line.heldBy([A], 100);
    line.heldBy([B], 150);
    expect(line.share(110, 180)).toEqual([
      [B, 30],
      [A, 40],
    ]);
    expect(line.share(155, 160)).toEqual([[B, 5]]);
  });

  it('count for the holder in the first reply, even before it', () => {
    const line = new WaitTimeline();
    line.heldBy([A], 103);
    expect(line.share(100, 110)).toEqual([[A, 10]]);
  });

  it('count for the next holder as soon as it is known', () => {
    const line = new WaitTimeline();
    line.heldBy([A], 100);
    line.ended(120);
    expect(line.share(110, 121)).toEqual([[A, 11]]);
    line.heldBy([B], 124);
    expect(line.share(110, 130)).toEqual([
      [B, 10],
      [A, 10],
    ]);
  });

  it('are unknown without a reply, or without time', () => {
    expect(new WaitTimeline().share(5, 10)).toEqual([[UNKNOWN, 5]]);
    expect(new WaitTimeline().share(5, 5)).toEqual([[UNKNOWN, 0]]);
  });

  it('are shared out completely, and stay small, however often the holder changes', () => {
    const change = fc.tuple(fc.constantFrom([A], [B], [A, B], undefined), fc.integer({ min: -5, max: 20 }));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 3_000, size: 'max' }), fc.nat(100), (changes, startedAt) => {
        const line = new WaitTimeline();
        let now = 0;
        for (const [holders, stepMs] of changes) {
          if (holders) line.heldBy(holders, now + stepMs);
          else line.ended(now + stepMs);
          now = Math.max(now, now + stepMs);
        }
        const parts = line.share(startedAt, Math.max(now, startedAt));
        expect(parts.length).toBeLessThanOrEqual(4);
        const sum = parts.reduce((total, [, ms]) => total + ms, 0);
        expect(sum).toBeCloseTo(Math.max(now, startedAt) - startedAt, 6);
        for (const [, ms] of parts) expect(ms).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: runs(50) },
    );
  });
});

function histogramOf(durations: readonly number[]): DurationHistogram {
  const histogram = new DurationHistogram();
  for (const ms of durations) histogram.record(ms);
  return histogram;
}

describe('the histogram of durations', () => {
  it('is empty at first', () => {
    const buckets = Array.from({ length: 16 }, () => 0);
    expect(histogramOf([]).read()).toEqual({ count: 0, totalMs: 0, p50Ms: 0, p95Ms: 0, maxMs: 0, buckets });
  });

  it('counts each duration in the first bucket that is long enough, and what is longer in one more', () => {
    const { buckets, count, totalMs, maxMs } = histogramOf([0, 1, 1.5, 2, 60_000, 60_001, 90_000]).read();
    expect(buckets).toEqual([2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    expect({ count, totalMs, maxMs }).toEqual({ count: 7, totalMs: 210_005.5, maxMs: 90_000 });
  });

  it('assumes an even spread in a bucket, and no duration above the longest', () => {
    expect(histogramOf(Array.from({ length: 100 }, () => 80)).read()).toMatchObject({
      p50Ms: 65,
      p95Ms: 78.5,
      maxMs: 80,
    });
    expect(histogramOf([100_000]).read()).toMatchObject({ p50Ms: 80_000, p95Ms: 98_000, maxMs: 100_000 });
  });

  it('counts a negative duration, from a clock that was set back, as zero', () => {
    expect(histogramOf([-5, NaN]).read()).toMatchObject({ count: 2, totalMs: 0, maxMs: 0 });
  });

  it('is frozen', () => {
    const read = histogramOf([1]).read();
    expect(Object.isFrozen(read) && Object.isFrozen(read.buckets)).toBe(true);
  });

  it('estimates quantiles within the bucket of the true one, in order, for any durations', () => {
    const durations = fc.array(fc.double({ min: 0, max: 200_000, noNaN: true }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(durations, (all) => {
        const { p50Ms, p95Ms, maxMs, count, buckets } = histogramOf(all).read();
        const sorted = [...all].sort((a, b) => a - b);
        expect(count).toBe(all.length);
        expect(buckets.reduce((sum, each) => sum + each)).toBe(all.length);
        expect(p50Ms).toBeLessThanOrEqual(p95Ms);
        expect(p95Ms).toBeLessThanOrEqual(maxMs);
        for (const [part, estimate] of [
          [0.5, p50Ms],
          [0.95, p95Ms],
        ] as const) {
          const truth = sorted[Math.max(0, Math.ceil(part * all.length) - 1)]!;
          const bucket = DURATION_BUCKETS_MS.findIndex((bound) => truth <= bound);
          const low = bucket > 0 ? DURATION_BUCKETS_MS[bucket - 1]! : bucket === 0 ? 0 : 60_000;
          const high = bucket === -1 ? Infinity : DURATION_BUCKETS_MS[bucket]!;
          expect(estimate).toBeGreaterThanOrEqual(low);
          expect(estimate).toBeLessThanOrEqual(high);
        }
      }),
    );
  });
});
