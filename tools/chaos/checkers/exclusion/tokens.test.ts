import { story } from '../story.js';
import { tokens } from './tokens.js';

describe('tokens', () => {
  it('accepts tokens that grow', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('a', 'stock', { from: 11, to: 12, token: 33 })
      .hold('b', 'stock', { from: 20, to: 30, token: 64 });
    expect(tokens(history)).toMatchObject({ violations: [] });
  });

  it('finds a later lease with a smaller token, also if others came between', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 96 })
      .hold('b', 'stock', { from: 10, to: 20, token: 128 })
      .hold('c', 'stock', { from: 21, to: 30, token: 64 });
    expect(tokens(history).violations).toHaveLength(1);
    expect(tokens(history).violations[0]!.what).toMatch(/^c .* with token 64, which is smaller than 128 of b /);
  });

  it('says nothing of a lease that was over when its process, which had stood still, heard of it', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 64 })
      .hold('b', 'stock', { from: 20, to: 20, token: 32 });
    expect(tokens(history).violations).toEqual([]);
  });

  it('says nothing of two that overlap: which came first is not known', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 64 })
      .hold('b', 'stock', { from: 9, to: 20, token: 32 });
    expect(tokens(history).violations).toEqual([]);
  });

  it('finds a token that is given twice', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { from: 10, to: 20, token: 32 })
      .hold('b', 'other', { from: 10, to: 20, token: 32 });
    expect(tokens(history).violations).toHaveLength(1);
  });

  it.each([NaN, 0, -32, 2 ** 60, 32.5])('%d is no token', (token) => {
    expect(tokens(story().hold('a', 'stock', { from: 0, to: 1, token }).history).violations).toHaveLength(1);
  });

  it('readers among each other, and permits, come in no order, and have tokens of their own', () => {
    const shared = (mode: 'read' | 'semaphore', token: number) =>
      tokens(
        story()
          .hold('a', 'stock', { mode, from: 0, to: 10, token: 64 })
          .hold('b', 'stock', { mode, from: 11, to: 20, token }).history,
      ).violations;
    expect(shared('read', 32)).toEqual([]);
    expect(shared('semaphore', 32)).toEqual([]);
    expect(shared('read', 64)).toHaveLength(1);
  });

  it('readers and writers are in order', () => {
    const { history } = story()
      .hold('a', 'stock', { mode: 'write', from: 0, to: 10, token: 64 })
      .hold('b', 'stock', { mode: 'read', from: 11, to: 20, token: 32 })
      .hold('c', 'stock', { mode: 'read', from: 11, to: 20, token: 160 })
      .hold('d', 'stock', { mode: 'write', from: 21, to: 30, token: 128 });
    expect(tokens(history).violations).toHaveLength(2);
  });

  it('a lease that is downgraded keeps its token', () => {
    const { history } = story()
      .hold('a', 'stock', { mode: 'write', from: 0, to: 10, token: 32, downgradedAt: 5 })
      .hold('b', 'stock', { mode: 'write', from: 11, to: 20, token: 64 });
    expect(tokens(history).violations).toEqual([]);
  });

  it('a token may repeat where the data was lost and the clock stepped, and not where only one of them happened', () => {
    const under = (lost: boolean, stepped: boolean) => {
      const told = story()
        .hold('a', 'stock', { from: 0, to: 10, token: 32 })
        .hold('b', 'stock', { from: 20, to: 30, token: 32 });
      if (lost) told.fault('kill', { from: 11, to: 12, victims: ['a', 'b'], breaksPromises: true, losesData: true });
      if (stepped)
        told.fault('clock', { from: 11, to: 40, victims: ['a', 'b'], breaksPromises: true, movesClock: true });
      return tokens(told.history);
    };
    expect(under(true, true)).toMatchObject({ violations: [], shown: [{ at: 20 }] });
    expect(under(true, false).violations).toHaveLength(1);
    expect(under(false, true).violations).toHaveLength(1);
  });

  it('a lease that Redis forgot before its holder heard of it has a smaller token: shown where data was lost meanwhile', () => {
    const told = story()
      .hold('b', 'stock', { asked: 5, from: 40, to: 50, until: 300, token: 32 })
      .hold('a', 'stock', { from: 20, to: 30, token: 64 });
    expect(tokens(told.history).violations).toHaveLength(1);
    told.fault('kill', { from: 10, to: 12, victims: ['a', 'b'], breaksPromises: true });
    expect(tokens(told.history)).toMatchObject({ violations: [], shown: [{ at: 40 }] });
  });
});
