import type { Holder } from '../../../../lib/kernel/api/holder.js';
import { WaitedFor } from '../../../../lib/extras/telemetry/spans/call-span.js';

const holder = (fencingToken: number, heldMs: number, instanceId = 'shop-1'): Holder => ({
  instanceId,
  isThisProcess: false,
  mode: 'exclusive',
  fencingToken,
  ttlMs: 1_000,
  leaseMs: 30_000,
  depth: 1,
  heldMs,
});

const listed = (blockers: WaitedFor, now: number) =>
  blockers.end(now).map(({ holder: { fencingToken }, waitedMs }) => [fencingToken, waitedMs]);

it('a holder that was seen once counts for the whole time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 5_000)], 0);
  expect(listed(blockers, 300)).toEqual([[1, 300]]);
});

it('a holder that is seen again continues its time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 10)], 0);
  blockers.see([holder(1, 1_010)], 1_000);
  blockers.see([holder(1, 2_010)], 2_000);
  expect(listed(blockers, 2_500)).toEqual([[1, 2_500]]);
});

it('the next holder counts from its grant, and the previous one until then', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 10)], 0);
  blockers.see([holder(2, 700)], 1_000);
  expect(listed(blockers, 1_500)).toEqual([
    [2, 1_200],
    [1, 300],
  ]);
});

it('a holder that had the lock before the call counts from the call', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 60_000)], 400);
  expect(listed(blockers, 500)).toEqual([[1, 500]]);
});

it('readers that hold it together count each', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 50), holder(2, 20, 'shop-2')], 0);
  expect(listed(blockers, 100)).toEqual([
    [1, 100],
    [2, 100],
  ]);
});

it('an answer that names no holder changes nothing', () => {
  const blockers = new WaitedFor();
  blockers.see([], 50);
  blockers.see([holder(1, 90)], 100);
  blockers.see([], 150);
  expect(listed(blockers, 200)).toEqual([[1, 190]]);
});

it('the eight longest of a thousand holders are named', () => {
  const blockers = new WaitedFor();
  for (let token = 1; token <= 1_000; token++) {
    const slow = token === 500 ? 5_000 : 0;
    blockers.see([holder(token, 1 + slow)], token * 10 + (token >= 500 ? 5_000 : 0));
  }
  const found = listed(blockers, 15_010);
  expect(found).toHaveLength(8);
  expect(found[0]![0]).toBe(500);
});

it('a wrong clock of another process adds no time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, -5_000)], 100);
  blockers.see([holder(2, Number.NaN)], 200);
  const sum = blockers.end(300).reduce((total, { waitedMs }) => total + waitedMs, 0);
  expect(sum).toBeLessThanOrEqual(300);
});
