import { refusals } from './refusals.js';
import { type Story, story } from './story.js';

/** Redis refuses from 100 to 200, which includes the release. */
const refused = (): Story =>
  story()
    .hold('a', 'stock', { from: 0, to: 150, until: 9_000, token: 32, leaseMs: 9_000 })
    .fault('Redis: refuses EVALSHA', { from: 100, to: 200, victims: ['a', 'b'] });
const end = (told: Story): Story => told.hold('a', 'other', { from: 20_000, to: 20_001, token: 32 });
const granted = (from: number): Story =>
  end(refused().hold('b', 'stock', { asked: 180, from, to: from + 1, token: 64, leaseMs: 9_000 }));

describe('refusals', () => {
  it('accepts a grant soon after the refusals', () => {
    expect(refusals(granted(2_699).history)).toEqual({ rule: 'refusals', looked: 1, violations: [] });
  });

  it('finds a lock that stays taken, unless it was held, nobody wanted it, or something else stood still', () => {
    expect(refusals(granted(2_701).history).violations).toMatchObject([{ at: 2_700 }]);
    const busy = granted(5_501).stall('b', 1_000, 1_800).stall('a', 1_500, 3_800);
    expect(refusals(busy.history).violations).toMatchObject([{ at: 5_500 }]);
    expect(refusals(granted(2_701).stall('b', 1_000, 1_100).history).violations).toEqual([]);
    const other = granted(2_701).fault('Redis: BUSY', { from: 1_000, to: 1_100, victims: ['a', 'b'] });
    expect(refusals(other.history)).toMatchObject({ looked: 0, violations: [] });
    const held = end(story().hold('c', 'stock', { from: 0, to: 4_000, token: 16 }));
    held.add(...refused().entries).hold('b', 'stock', { asked: 180, from: 4_001, to: 4_002, token: 64 });
    expect(refusals(held.history)).toMatchObject({ looked: 0, violations: [] });
    const late = end(refused().hold('b', 'stock', { asked: 2_600, from: 5_000, to: 5_001, token: 64 }));
    expect(refusals(late.history)).toMatchObject({ looked: 0, violations: [] });
    const gaveUp = end(refused().refused('b', 'stock', { asked: 180, at: 300, code: 'LOCK_TIMEOUT' }));
    expect(refusals(gaveUp.history)).toMatchObject({ looked: 0, violations: [] });
  });

  it('finds permits that stay taken, if as many are free as each call wants', () => {
    const wants = (permits: number): Story =>
      end(
        refused()
          .hold('a', 'seats', { from: 0, to: 9_000, token: 32, mode: 'semaphore', permits: 1, total: 2 })
          .hold('b', 'seats', { asked: 180, from: 9_001, to: 9_002, token: 64, mode: 'semaphore', permits, total: 2 }),
      );
    expect(refusals(wants(1).history).violations).toHaveLength(1);
    expect(refusals(wants(2).history).violations).toEqual([]);
  });

  it('finds a job whose next run does not begin', () => {
    const tick = (phase: 'start' | 'end', at: number, tick: string): Story['entries'][number] => {
      return {
        type: 'tick',
        process: 'a',
        phase,
        at,
        tick,
        job: 'report',
        onCrash: 'skip',
        rerun: false,
        token: 32,
        until: at,
      };
    };
    const ran = (...told: Story['entries']): number => {
      return refusals(end(refused().add(tick('start', 50, '1'), ...told)).history).violations.length;
    };
    expect(ran(tick('end', 150, '1'), tick('start', 2_600, '2'))).toBe(0);
    expect(ran(tick('end', 150, '1'), tick('start', 2_800, '2'))).toBe(1);
    expect(ran(tick('end', 2_790, '1'), tick('start', 2_800, '2'))).toBe(0);
  });
});
