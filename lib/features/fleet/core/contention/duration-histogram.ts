import { DURATION_BUCKETS_MS } from '../../../../kernel/util/durations.js';

/** Statistics of the durations of many calls or leases, in milliseconds. */
export interface Durations {
  readonly count: number;
  readonly totalMs: number;
  /** The median, as exact as the buckets. */
  readonly p50Ms: number;
  /** The 95th percentile, as exact as the buckets. */
  readonly p95Ms: number;
  readonly maxMs: number;
  /**
   * The number of durations in each bucket: up to 1, 2, 5, 10, 25, 50, 100, 250 and 500 ms, up to 1, 2.5, 5, 10, 30 and
   * 60 s, and longer.
   */
  readonly buckets: readonly number[];
}

/** Counts durations in buckets: its size does not grow. */
export class DurationHistogram {
  readonly #buckets = [...DURATION_BUCKETS_MS, Infinity].map(() => 0);
  #count = 0;
  #totalMs = 0;
  #maxMs = 0;

  record(durationMs: number): void {
    // A clock that a test sets back, or another's mistake, must not spoil the sums.
    const ms = durationMs > 0 ? durationMs : 0;
    let bucket = 0;
    while (bucket < DURATION_BUCKETS_MS.length && ms > DURATION_BUCKETS_MS[bucket]!) bucket++;
    this.#buckets[bucket]!++;
    this.#count++;
    this.#totalMs += ms;
    if (ms > this.#maxMs) this.#maxMs = ms;
  }

  read(): Durations {
    return Object.freeze({
      count: this.#count,
      totalMs: rounded(this.#totalMs),
      p50Ms: rounded(this.#quantile(0.5)),
      p95Ms: rounded(this.#quantile(0.95)),
      maxMs: rounded(this.#maxMs),
      buckets: Object.freeze([...this.#buckets]),
    });
  }

  /** Takes the durations of a bucket as spread evenly. Never more than the longest one. */
  #quantile(part: number): number {
    const rank = part * this.#count;
    let before = 0;
    for (const [bucket, count] of this.#buckets.entries()) {
      if (count > 0 && before + count >= rank) {
        const low = bucket === 0 ? 0 : DURATION_BUCKETS_MS[bucket - 1]!;
        const high = Math.min(DURATION_BUCKETS_MS[bucket] ?? Infinity, this.#maxMs);
        return low + (high - low) * ((rank - before) / count);
      }
      before += count;
    }
    return this.#maxMs;
  }
}

/** To a hundredth of a millisecond. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
