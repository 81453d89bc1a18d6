import fc from 'fast-check';
import { DurationHistogram } from '../../../../../lib/features/fleet/core/contention/duration-histogram.js';
import { DURATION_BUCKETS_MS } from '../../../../../lib/kernel/util/durations.js';

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
