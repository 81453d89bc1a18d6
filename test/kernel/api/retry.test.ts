import { exponentialBackoff, fixedInterval, type RetryState } from '../../../lib/kernel/api/retry.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

function state(attempt: number, random = () => 0.5): RetryState {
  return { attempt, elapsedMs: 0, lastAttempt: 'busy', holderTtlMs: 0, random };
}

describe('fixedInterval', () => {
  it('pauses the same each time, without end', () => {
    const retry = fixedInterval({ intervalMs: 40 });
    expect([1, 2, 1_000_000].map((attempt) => retry.next(state(attempt)))).toEqual([40, 40, 40]);
  });

  it('gives up after maxAttempts', () => {
    const retry = fixedInterval({ intervalMs: 40, maxAttempts: 3 });
    expect([1, 2, 3].map((attempt) => retry.next(state(attempt)))).toEqual([40, 40, null]);
  });

  it.each<[object, RegExp]>([
    [{}, /fixedInterval\.intervalMs must be an integer from 1 to 86400000 \(milliseconds\), not undefined/],
    [{ intervalMs: 0 }, /from 1 to 86400000.*not 0/],
    [{ intervalMs: 1.5 }, /not 1\.5/],
    [
      { intervalMs: 10, maxAttempts: 0 },
      /fixedInterval\.maxAttempts must be an integer of 1 or more \(attempts\) or Infinity, not 0/,
    ],
    [{ interval: 10 }, /Did you mean intervalMs\?/],
  ])('refuses %p', (options, why) => {
    expect(() => fixedInterval(options as never)).toThrow(why);
  });
});

describe('exponentialBackoff', () => {
  it('doubles up to maxMs', () => {
    const retry = exponentialBackoff({ initialMs: 10, maxMs: 100, jitter: false });
    expect([1, 2, 3, 4, 5, 6].map((attempt) => retry.next(state(attempt)))).toEqual([10, 20, 40, 80, 100, 100]);
  });

  it('stays at maxMs forever', () => {
    const retry = exponentialBackoff({ jitter: false });
    expect(retry.next(state(5_000))).toBe(2_000);
  });

  it('takes a random part of the pause, at least 1 ms, so that waiters do not ask in step', () => {
    const retry = exponentialBackoff({ initialMs: 100, maxMs: 100 });
    expect(retry.next(state(1, () => 0))).toBe(1);
    expect(retry.next(state(1, () => 0.25))).toBe(25);
    const random = new SeededRandom(7);
    const pauses = Array.from({ length: 200 }, () => retry.next(state(1, () => random.fraction()))!);
    expect(new Set(pauses).size).toBeGreaterThan(190);
    expect(Math.max(...pauses)).toBeLessThan(100);
  });

  it('gives up after maxAttempts', () => {
    expect(exponentialBackoff({ maxAttempts: 2 }).next(state(2))).toBeNull();
  });

  it.each<[object, RegExp]>([
    [{ initialMs: 0 }, /exponentialBackoff\.initialMs must be an integer from 1/],
    [{ maxMs: -5 }, /exponentialBackoff\.maxMs .* not -5/],
    [{ factor: 0.5 }, /exponentialBackoff\.factor must be a number from 1 to 10, not 0\.5/],
    [{ factor: NaN }, /not NaN/],
    [{ factor: '2' }, /not "2"/],
    [{ jitter: 'full' }, /exponentialBackoff\.jitter must be true or false, not "full"/],
    [{ maxRetries: 3 }, /does not know the option "maxRetries"/],
  ])('refuses %p', (options, why) => {
    expect(() => exponentialBackoff(options as never)).toThrow(why);
  });
});
