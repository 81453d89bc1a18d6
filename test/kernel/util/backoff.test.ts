import { backoff, jitter } from '../../../lib/kernel/util/clock.js';

describe('a pause before the next try', () => {
  it('doubles with each failure, up to the maximum', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 1_000, Infinity].map((failures) =>
      backoff({ first: 20, longest: 200 }, failures),
    );
    expect(pauses).toEqual([20, 40, 80, 160, 200, 200, 200, 200]);
  });

  it('never exceeds the maximum, even the first one', () => {
    expect(backoff({ first: 20, longest: 16 }, 1)).toBe(16);
  });

  it('is up to a quarter longer with jitter', () => {
    expect([0, 0.5].map((fraction) => jitter({ fraction: () => fraction }))).toEqual([1, 1.125]);
  });
});
