import { endings } from './endings.js';
import { story } from '../story.js';

describe('endings', () => {
  it('accepts calls that were granted, or refused in time', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32, waitMs: 100 })
      .refused('b', 'stock', { asked: 0, at: 105, waitMs: 100, code: 'LOCK_TIMEOUT' });
    expect(endings(history)).toEqual({ rule: 'endings', looked: 2, violations: [] });
  });

  it('finds a call that never ended, unless its process died', () => {
    const told = story().waits('a', 'stock', { asked: 0 });
    expect(endings(told.history).violations).toHaveLength(1);
    expect(endings(told.died('a', 5).history).violations).toEqual([]);
  });

  it('finds one that ended twice', () => {
    const told = story().hold('a', 'stock', { as: 'one', from: 0, to: 10, token: 32 });
    told.add({ type: 'fail', op: 'acquire', at: 11, process: 'a', call: 'one', code: 'LOCK_TIMEOUT' });
    expect(endings(told.history).violations).toHaveLength(1);
  });

  it('finds a release that never ended', () => {
    const told = story().hold('a', 'stock', { as: 'one', from: 0, to: 10, token: 32, ends: 'never' });
    expect(endings(told.history).violations).toEqual([]);
    told.add({ type: 'invoke', op: 'release', at: 10, process: 'a', call: 'one' });
    expect(endings(told.history).violations).toHaveLength(1);
  });

  it('finds one that ended after its process had closed', () => {
    const told = story().hold('a', 'stock', { from: 20, to: 21, token: 32 });
    expect(endings(told.closes('a', 5, 10).history).violations).toHaveLength(1);
  });

  it('finds one that waited too long, but for the time it was struck', () => {
    const told = story().hold('a', 'stock', { asked: 0, waitMs: 100, from: 5000, to: 5001, token: 32 });
    told.hold('b', 'other', { from: 0, to: 1, token: 32 });
    expect(endings(told.history).violations).toHaveLength(1);
    told.fault('sigstop', { from: 50, to: 4000, victims: ['a'] });
    expect(endings(told.history).violations).toEqual([]);
  });
});
