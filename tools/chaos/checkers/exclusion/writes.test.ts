import { story } from '../story.js';
import { writes } from './writes.js';

describe('writes', () => {
  it('accepts writes that were accepted, and stale ones that were not', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 10, token: 32 })
      .wrote('a', 'one', { at: 5, token: 32 })
      .hold('b', 'stock', { as: 'two', from: 11, to: 20, token: 64 })
      .wrote('b', 'two', { at: 12, token: 64 })
      .wrote('a', 'one', { at: 13, token: 32, accepted: false, heldAfter: false })
      .witnessed(5, 32)
      .witnessed(12, 64)
      .witnessed(13, 32, false);
    expect(writes(history)).toEqual({ rule: 'writes', looked: 6, violations: [] });
  });

  it('finds a write under the lock that was refused', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 10, token: 32 })
      .wrote('a', 'one', { at: 5, token: 32, accepted: false });
    expect(writes(history).violations).toHaveLength(1);
  });

  it('shows it where Redis had lost its data', () => {
    const { history } = story()
      .fault('kill', { from: 2, to: 3, victims: ['a', 'b'], breaksPromises: true })
      .hold('a', 'stock', { as: 'one', from: 0, to: 10, token: 32 })
      .wrote('a', 'one', { at: 5, token: 32, accepted: false });
    expect(writes(history)).toMatchObject({ violations: [], shown: [{ at: 5 }] });
  });

  it('readers write beside each other, as a writer does that became one', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'one', mode: 'read', from: 0, to: 10, token: 32 })
      .wrote('a', 'one', { at: 5, token: 32, accepted: false })
      .hold('b', 'stock', { as: 'two', mode: 'write', from: 20, to: 30, token: 64, downgradedAt: 21 })
      .wrote('b', 'two', { at: 25, token: 64, accepted: false });
    expect(writes(history).violations).toEqual([]);
  });

  it('finds a witness that accepts a smaller token after a larger one, whatever the fault', () => {
    const { history } = story()
      .fault('kill', { from: 2, to: 3, victims: ['a', 'b'], breaksPromises: true })
      .witnessed(5, 64)
      .witnessed(6, 32)
      .witnessed(7, 32, true, 'other');
    expect(writes(history).violations).toHaveLength(1);
  });
});
