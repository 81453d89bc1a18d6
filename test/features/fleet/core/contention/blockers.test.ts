import fc from 'fast-check';
import { Blockers, type HolderKey } from '../../../../../lib/features/fleet/core/contention/blockers.js';
import { WaitTimeline } from '../../../../../lib/features/fleet/core/contention/wait-timeline.js';
import { anyCharacter } from '../../../../support/names/hostile-names.js';
import { runs } from '../../../../support/simulation/runs.js';

const REPORT: HolderKey = { group: 'NightlyReport.run' };

describe('the waits between groups', () => {
  it('add up for each pair, the longest first', () => {
    const blockers = new Blockers();
    blockers.add('Orders.pay', [[{ group: 'Orders.pay' }, 40]]);
    for (let call = 0; call < 41; call++) blockers.add('Orders.pay', [[REPORT, 78]]);
    expect(blockers.top(10).map(({ text }) => text)).toEqual([
      'Orders.pay waited 3.2 s in 41 calls for NightlyReport.run',
      'Orders.pay waited 40 ms in 1 call for Orders.pay',
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
      ['Orders.pay waited 5 ms in 1 call for an unknown holder of shop-2:77', 'shop-2:77'],
      ['Orders.pay waited 1 ms in 1 call for an unknown holder', undefined],
      ['Orders.pay waited 0 ms in 1 call for "instance shop-2:77"', undefined],
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
      String.raw`"<b>\u202e" waited 1 ms in 1 call for an unknown holder of "a\nb"`,
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
      { holder: '_other', waitedMs: 400, calls: 400, text: 'a waited 400 ms in 400 calls for other holders' },
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
  const A: HolderKey = { group: 'A' };
  const B: HolderKey = { group: 'B' };
  const UNKNOWN: HolderKey = { group: '_unknown' };

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
