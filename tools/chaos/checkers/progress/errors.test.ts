import type { History } from '../../history/history.js';
import { BOUNDS } from '../bounds.js';
import { errors } from './errors.js';
import { type Story, story } from '../story.js';

type Refused = Parameters<Story['refused']>[2];

function isExplained(refused: Refused, tell: (told: Story) => Story = (told) => told): boolean {
  const { history } = tell(story().hold('b', 'stock', { from: 0, to: 5000, token: 32 }).refused('a', 'stock', refused));
  const { looked, violations } = errors(history);
  expect(looked).toBeGreaterThan(0);
  return violations.length === 0;
}

describe('errors', () => {
  it('out of time: when its time was over', () => {
    expect(isExplained({ asked: 0, at: 999, waitMs: 1000, code: 'LOCK_TIMEOUT' })).toBe(true);
    expect(isExplained({ asked: 0, at: 900, waitMs: 1000, code: 'LOCK_TIMEOUT' })).toBe(false);
    expect(isExplained({ asked: 0, at: 900, code: 'LOCK_TIMEOUT' })).toBe(false);
  });

  it('out of time: a little sooner where the process was suspended meanwhile', () => {
    const early: Refused = { asked: 0, at: 1_980, waitMs: 2_000, code: 'LOCK_TIMEOUT' };
    const suspended = (kind: string, from: number) => (told: Story) => {
      return told.fault(kind, { from, to: from + 100, victims: ['a'] });
    };
    expect(isExplained(early, suspended('suspend of a granted waiter', 500))).toBe(true);
    expect(isExplained({ ...early, at: 1_970 }, suspended('suspend of a granted waiter', 500))).toBe(false);
    expect(isExplained(early, suspended('SIGSTOP of a holder, past its lease', 500))).toBe(false);
    expect(isExplained(early, suspended('suspend of a granted waiter', 1_990))).toBe(false);
    expect(isExplained(early)).toBe(false);
  });

  it('busy: to one that does not stand in the queue', () => {
    expect(isExplained({ at: 10, waitMs: 0, queues: false, code: null })).toBe(true);
    expect(isExplained({ at: 10, waitMs: 0, queues: false, code: 'LOCK_BUSY' })).toBe(true);
    expect(isExplained({ at: 10, waitMs: 100, code: 'LOCK_BUSY' })).toBe(false);
  });

  it('aborted: where the worker does so', () => {
    expect(isExplained({ asked: 0, at: 50, abortMs: 50, code: 'LOCK_ABORTED' })).toBe(true);
    expect(isExplained({ asked: 0, at: 40, abortMs: 50, code: 'LOCK_ABORTED' })).toBe(false);
    expect(isExplained({ asked: 0, at: 50, code: 'LOCK_ABORTED' })).toBe(false);
  });

  it('unavailable: where Redis or the process was struck', () => {
    const refused: Refused = { asked: 1000, at: 2000, waitMs: 1000, code: 'LOCK_UNAVAILABLE', type: 'unknown' };
    const by = (victims: string[], from: number) => (told: Story) => told.fault('x', { from, to: from + 10, victims });
    expect(isExplained(refused, by(['a', 'b'], 1500))).toBe(true);
    expect(isExplained(refused, by(['a'], 1500))).toBe(true);
    expect(isExplained(refused, by(['a'], 800))).toBe(true);
    expect(isExplained(refused, (told) => told.stall('a', 1500, 1600))).toBe(true);
    expect(isExplained(refused, by(['b'], 1500))).toBe(false);
    expect(isExplained(refused, by(['a'], 100))).toBe(false);
    expect(isExplained(refused, by(['a'], 2001))).toBe(false);
    expect(isExplained(refused)).toBe(false);
  });

  it('unavailable: where it had no time to be answered', () => {
    const code = 'LOCK_UNAVAILABLE';
    expect(isExplained({ asked: 0, at: 20, waitMs: 20, code })).toBe(true);
    expect(isExplained({ asked: 0, at: 10, waitMs: 20, code })).toBe(false);
    const turn = (at: number) => (told: Story) => told.hold('a', 'stock', { from: 6000, to: at, token: 64 });
    expect(isExplained({ asked: 6000, at: 7000, waitMs: 1000, code }, turn(6990))).toBe(true);
    expect(isExplained({ asked: 6000, at: 7000, waitMs: 1000, code }, turn(6400))).toBe(false);
  });

  it('unavailable: where the grant came when a short lease was over', () => {
    const refused: Refused = { asked: 0, at: 290, waitMs: 0, leaseMs: 300, queues: false, code: 'LOCK_UNAVAILABLE' };
    expect(isExplained(refused)).toBe(true);
    expect(isExplained({ ...refused, at: 200 })).toBe(false);
    expect(isExplained({ ...refused, at: 590, leaseMs: 600 })).toBe(false);
  });

  it('shutting down: when it is', () => {
    expect(isExplained({ at: 10, code: 'LOCK_SHUTDOWN' }, (told) => told.closes('a', 9, 20))).toBe(true);
    expect(isExplained({ at: 10, code: 'LOCK_SHUTDOWN' }, (told) => told.closes('a', 11, 20))).toBe(false);
    expect(isExplained({ at: 10, code: 'LOCK_SHUTDOWN' })).toBe(false);
  });

  it('a mismatch: where somebody takes it for something else', () => {
    const code = 'LOCK_MODE_MISMATCH';
    expect(isExplained({ at: 10, mode: 'semaphore', total: 2, code })).toBe(true);
    expect(isExplained({ at: 10, code })).toBe(false);
  });

  it('what nobody has heard of is explained by nothing', () => {
    for (const code of ['INVALID_LOCK_OPTIONS', 'LOCK_QUEUE_FULL', 'LOCK_REENTRY', 'LEASE_LOST', 'ECONNRESET']) {
      expect(isExplained({ at: 10, code })).toBe(false);
    }
  });

  it('a release that fails: where Redis or the process was struck', () => {
    const told = story().hold('a', 'stock', { as: 'one', from: 0, to: 0, token: 32, ends: 'never' });
    told.hold('b', 'other', { from: 0, to: 1, token: 32 });
    told.add({ type: 'invoke', op: 'release', at: 900, process: 'a', call: 'one' });
    told.add({ type: 'unknown', op: 'release', at: 1900, process: 'a', call: 'one', code: 'LOCK_UNAVAILABLE' });
    expect(errors(told.history).violations).toHaveLength(1);
    told.fault('proxy-drop', { from: 890, to: 901, victims: ['a'] });
    expect(errors(told.history).violations).toEqual([]);
  });

  it('a release that fails: where the network stood still for as long as nodes of a quorum have to answer', () => {
    const told = (...stalls: [number, number][]) => {
      const one = story().hold('a', 'stock', { as: 'one', from: 0, to: 0, token: 32, ends: 'never' });
      for (const [from, to] of stalls) one.stall('chaos', from, to);
      one.add({ type: 'invoke', op: 'release', at: 900, process: 'a', call: 'one' });
      one.add({ type: 'unknown', op: 'release', at: 960, process: 'a', call: 'one', code: 'LOCK_UNAVAILABLE' });
      return one.history;
    };
    const violations = (history: History, splitsVotes = true) =>
      errors(history, { ...BOUNDS, splitsVotes }).violations.length;
    expect(violations(told([900, 945]))).toBe(0);
    expect(violations(told([900, 920], [920, 945]))).toBe(0);
    expect(violations(told([900, 920], [930, 945]))).toBe(1);
    // Others wait for longer.
    expect(violations(told([900, 945]), false)).toBe(1);
  });
});
