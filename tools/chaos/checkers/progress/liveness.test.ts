import { History } from '../../history/history.js';
import { BOUNDS } from '../bounds.js';
import { liveness as check } from './liveness.js';
import { type Story, story } from '../story.js';

// A lease of 300 ms: a heartbeat of at most 125 ms. With these bounds a free resource is granted within 225 ms.
const liveness = (told: Story) => check(told.history, { ...BOUNDS, idleMs: 100 });

/** `a` releases at 100, and `b`, which waits since 50, gets it at this moment. `c` is there too. */
function grantedAt(at: number): Story {
  return story()
    .hold('c', 'other', { from: 0, to: 1, token: 32 })
    .hold('a', 'stock', { from: 0, to: 100, token: 32 })
    .hold('b', 'stock', { asked: 50, from: at, to: at + 10, token: 64 });
}

describe('liveness', () => {
  it('accepts a hand-over within a heartbeat', () => {
    expect(liveness(grantedAt(320))).toEqual({ rule: 'liveness', looked: 3, violations: [] });
  });

  it('finds a free resource that is not granted to who waits', () => {
    expect(liveness(grantedAt(330)).violations).toHaveLength(1);
    const never = story().hold('a', 'stock', { from: 0, to: 100, token: 32 }).waits('b', 'stock', { asked: 50 });
    expect(liveness(never.witnessed(1000, 32)).violations).toHaveLength(1);
  });

  it('is no fault of ours while the harness stands still, through which all networks go', () => {
    expect(liveness(grantedAt(700).stall('chaos', 110, 600)).violations).toEqual([]);
    expect(liveness(grantedAt(830).stall('chaos', 110, 600)).violations).toHaveLength(1);
    expect(liveness(grantedAt(330).stall('chaos', 110, 180)).violations).toHaveLength(1);
  });

  it('also in the end, where the one who waits gives up', () => {
    const told = story()
      .hold('a', 'stock', { from: 0, to: 100, token: 32 })
      .refused('b', 'stock', { asked: 50, at: 550, waitMs: 500, code: 'LOCK_TIMEOUT' });
    expect(liveness(told).violations).toHaveLength(1);
  });

  it('is not free while another one holds it, for all that is known', () => {
    expect(liveness(grantedAt(700).hold('c', 'stock', { from: 150, to: 600, token: 48 })).violations).toEqual([]);
    expect(
      liveness(grantedAt(700).hold('c', ['stock', 'x'], { asked: 150, from: 600, to: 610, token: [48, 49] }))
        .violations,
    ).toEqual([]);
    expect(
      liveness(grantedAt(700).refused('c', 'stock', { asked: 150, at: 250, code: 'LOCK_UNAVAILABLE', type: 'unknown' }))
        .violations,
    ).toEqual([]);
  });

  it('who does not queue waits for nothing', () => {
    const told = story().hold('b', 'stock', { asked: 0, from: 900, to: 901, token: 32, queues: false });
    expect(liveness(told).violations).toEqual([]);
  });

  it('a dead holder is in the way for its lease and a heartbeat', () => {
    const after = (at: number) =>
      liveness(
        story()
          .hold('a', 'stock', { from: 0, to: 0, until: 290, token: 32, ends: 'never' })
          .died('a', 100)
          .hold('b', 'stock', { asked: 50, from: at, to: at + 10, token: 64 }),
      ).violations;
    expect(after(620)).toEqual([]);
    expect(after(630)).toHaveLength(1);
  });

  it('so is one that lost it, or whose release was not answered', () => {
    const lost = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 900, until: 290, token: 32 })
      .lost('a', 'one', { at: 900, until: 290, loopRanAt: 100 });
    const unanswered = story().hold('a', 'stock', { as: 'one', from: 0, to: 0, token: 32, ends: 'never' });
    unanswered.add({ type: 'invoke', op: 'release', at: 100, process: 'a', call: 'one' });
    unanswered.add({ type: 'unknown', op: 'release', at: 500, process: 'a', call: 'one', code: 'LOCK_UNAVAILABLE' });
    for (const told of [lost, unanswered]) {
      const after = (at: number) =>
        liveness(
          story()
            .add(...told.entries)
            .hold('b', 'stock', { asked: 50, from: at, to: at + 10, token: 64 }),
        ).violations;
      expect(after(620)).toEqual([]);
      expect(after(630)).toHaveLength(1);
    }
  });

  it('nothing is promised while Redis or the one who waits is struck', () => {
    expect(
      liveness(grantedAt(700).fault('redis-stop', { from: 110, to: 400, victims: ['a', 'b', 'c'] })).violations,
    ).toEqual([]);
    expect(liveness(grantedAt(700).fault('sigstop', { from: 110, to: 600, victims: ['b'] })).violations).toEqual([]);
    expect(
      liveness(grantedAt(700).fault('redis-stop', { from: -500, to: -490, victims: ['a', 'b', 'c'] })).violations,
    ).toHaveLength(1);
  });

  it('a fault that loses messages is no excuse', () => {
    const told = grantedAt(700).fault('subscriber-black-hole', { from: 90, to: 2000, victims: ['a', 'b', 'c'] });
    expect(liveness(told).violations).toHaveLength(1);
  });

  it('another one that stands still in the queue may have it for its lease, and no longer', () => {
    const stopped = (at: number) =>
      liveness(
        grantedAt(at)
          .waits('c', 'stock', { asked: 60 })
          .fault('sigstop', { from: 90, to: 2000, victims: ['c'] })
          .stall('c', 90, 2001),
      ).violations;
    expect(stopped(610)).toEqual([]);
    expect(stopped(620)).toHaveLength(1);
  });

  it('who stands still for a moment again and again has that much more time, and no more', () => {
    const stalled = (at: number) =>
      liveness(grantedAt(at).stall('b', 150, 200).stall('b', 260, 310).stall('b', 400, 450)).violations;
    expect(stalled(470)).toEqual([]);
    expect(stalled(480)).toHaveLength(1);
  });

  it('also of a history that goes on', () => {
    const told = story().hold('a', 'stock', { from: 0, to: 100, token: 32 }).waits('b', 'stock', { asked: 50 });
    const heardUntil = (at: number) => check(new History(told.entries, at), { ...BOUNDS, idleMs: 100 }).violations;
    expect(heardUntil(320)).toEqual([]);
    expect(heardUntil(330)).toHaveLength(1);
  });
});
