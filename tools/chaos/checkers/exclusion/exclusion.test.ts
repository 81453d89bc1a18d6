import { exclusion } from './exclusion.js';
import { story } from '../story.js';

describe('exclusion', () => {
  it('accepts leases one after another, and looks at each', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { from: 10, to: 20, token: 64 });
    expect(exclusion(history)).toEqual({ rule: 'exclusion', looked: 2, violations: [] });
  });

  it('finds two that hold it at once, and says who, when, for how long and under what', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { from: 8, to: 20, token: 64 })
      .fault('proxy-delay', { from: 7, to: 9, victims: ['a'] });
    const { violations } = exclusion(history);
    expect(violations).toHaveLength(1);
    expect(violations[0]).toMatchObject({ rule: 'exclusion', at: 8 });
    expect(violations[0]!.what).toMatch(
      /"stock" was held by a .*token 32.* and by b .*token 64.*2\.000 ms.*proxy-delay/,
    );
  });

  it('finds each pair, also around one that lasts long', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 100, token: 32 })
      .hold('b', 'stock', { from: 10, to: 20, token: 64 })
      .hold('c', 'stock', { from: 30, to: 40, token: 96 });
    expect(exclusion(history).violations).toHaveLength(2);
  });

  it('takes a lease for over at its deadline, at its loss, and when its end is called', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 50, until: 10, token: 32 })
      .hold('b', 'stock', { as: 'two', from: 10, to: 50, until: 100, token: 64 })
      .lost('b', 'two', { at: 20, until: 100 })
      .hold('c', 'stock', { as: 'three', from: 20, to: 50, until: 100, token: 96 })
      .look('c', 'three', { at: 30, held: false })
      .hold('d', 'stock', { from: 30, to: 40, until: 100, token: 128 })
      .hold('e', 'stock', { from: 40, to: 50, token: 160 });
    expect(exclusion(history).violations).toEqual([]);
  });

  it('takes a lease for held until the deadline that was looked at last', () => {
    const renewed = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 500, until: 100, token: 32 })
      .look('a', 'one', { at: 50, held: true, until: 150 })
      .hold('b', 'stock', { from: 120, to: 130, token: 64 });
    expect(exclusion(renewed.history).violations).toHaveLength(1);
    const shortened = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 500, until: 100, token: 32 })
      .look('a', 'one', { at: 50, held: true, until: 60 })
      .hold('b', 'stock', { from: 70, to: 80, token: 64 });
    expect(exclusion(shortened.history).violations).toEqual([]);
  });

  it('a dead holder holds until its deadline', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 0, until: 100, token: 32, ends: 'never' })
      .died('a', 10)
      .hold('b', 'stock', { from: 90, to: 110, token: 64 });
    expect(exclusion(history).violations).toHaveLength(1);
  });

  it.each([
    ['read', 'read', 0],
    ['read', 'write', 1],
    ['write', 'read', 1],
    ['reentrant', 'exclusive', 1],
    ['semaphore', 'semaphore', 0],
    ['semaphore', 'exclusive', 1],
    ['read', 'semaphore', 1],
  ] as const)('%s beside %s: %i violations', (one, other, count) => {
    const { history } = story()
      .hold('a', 'stock', { mode: one, from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { mode: other, from: 5, to: 20, token: 64 });
    expect(exclusion(history).violations).toHaveLength(count);
  });

  it('a writer that became a reader reads beside readers, and beside no writer', () => {
    const writer = story().hold('a', 'stock', { mode: 'write', from: 0, to: 20, token: 32, downgradedAt: 10 });
    const beside = (mode: 'read' | 'write', from: number) =>
      exclusion(
        story()
          .add(...writer.entries)
          .hold('b', 'stock', { mode, from, to: 15, token: 64 }).history,
      ).violations;
    expect(beside('read', 10)).toEqual([]);
    expect(beside('read', 9)).toHaveLength(1);
    expect(beside('write', 12)).toHaveLength(1);
  });

  it('whoever enters again does not meet itself', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'outer', mode: 'reentrant', from: 0, to: 20, token: 32 })
      .hold('a', 'stock', { mode: 'reentrant', from: 5, to: 10, token: 32, inside: 'outer' })
      .hold('b', 'stock', { mode: 'reentrant', from: 21, to: 30, token: 64 });
    expect(exclusion(history)).toMatchObject({ looked: 2, violations: [] });
  });

  it('one that enters after the outer lease was lost has a lease of its own', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'outer', mode: 'reentrant', from: 0, to: 200, until: 10, token: 32 })
      .hold('b', 'stock', { from: 25, to: 40, token: 96 })
      .hold('a', 'stock', { mode: 'reentrant', from: 20, to: 30, token: 64, inside: 'outer' });
    expect(exclusion(history).violations).toHaveLength(1);
  });

  it('different resources have nothing to do with each other; several at once count each', () => {
    const { history } = story()
      .hold('a', ['x', 'y'], { from: 0, to: 10, token: [32, 64] })
      .hold('b', 'z', { from: 5, to: 10, token: 96 })
      .hold('b', 'y', { from: 5, to: 10, token: 128 });
    expect(exclusion(history).violations).toHaveLength(1);
  });

  it('shows what happens where Redis has lost its data, and only then', () => {
    const overlapAfter = (to: number) =>
      exclusion(
        story()
          .fault('redis-kill', { from: 0, to, victims: ['a', 'b'], breaksPromises: true })
          .hold('a', 'stock', { from: 3000, to: 3100, token: 32 })
          .hold('b', 'stock', { from: 3050, to: 3200, token: 64 }).history,
      );
    expect(overlapAfter(2500)).toMatchObject({
      violations: [],
      shown: [{ what: expect.stringContaining('redis-kill') }],
    });
    expect(overlapAfter(2000).violations).toHaveLength(1);
  });
});
