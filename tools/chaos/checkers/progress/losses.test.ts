import { BOUNDS } from '../bounds.js';
import { losses } from './losses.js';
import { type Story, story } from '../story.js';

const held = (): Story => story().hold('a', 'stock', { as: 'one', from: 0, to: 9000, until: 300, token: 32 });

describe('losses', () => {
  it('accepts a loss at the deadline, and looks that know of it', () => {
    const { history } = held()
      .look('a', 'one', { at: 100, held: true, until: 300 })
      .lost('a', 'one', { at: 301, until: 300 })
      .look('a', 'one', { at: 302, held: false });
    expect(losses(history)).toEqual({ rule: 'losses', looked: 3, violations: [] });
  });

  it('finds a loss that was noticed late, unless the loop stood still', () => {
    const noticed = (loopRanAt: number) =>
      losses(held().lost('a', 'one', { at: 900, until: 300, loopRanAt }).history).violations;
    expect(noticed(880)).toHaveLength(1);
    expect(noticed(290)).toEqual([]);
    const resumed = held().stall('a', 290, 899).lost('a', 'one', { at: 900, until: 300, loopRanAt: 899 });
    expect(losses(resumed.history).violations).toEqual([]);
  });

  it('finds a look that says held after the deadline', () => {
    expect(losses(held().look('a', 'one', { at: 400, held: true, until: 400 }).history).violations).toHaveLength(1);
  });

  it('finds a lease that revives, by its looks or after its signal', () => {
    const looks = held().look('a', 'one', { at: 100, held: false }).look('a', 'one', { at: 101, held: true });
    expect(losses(looks.history).violations).toHaveLength(1);
    const signal = held().lost('a', 'one', { at: 100, until: 100 }).look('a', 'one', { at: 101, held: true });
    expect(losses(signal.history).violations).toHaveLength(1);
  });

  it('finds a signal that does not say what the lease says', () => {
    expect(losses(held().look('a', 'one', { at: 100, held: false, aborted: false }).history).violations).toHaveLength(
      1,
    );
    expect(losses(held().look('a', 'one', { at: 100, held: true, aborted: true }).history).violations).toHaveLength(1);
    expect(losses(held().look('a', 'one', { at: 9001, held: false, aborted: false }).history).violations).toEqual([]);
  });

  it('finds a lease that was taken over before its deadline, unless Redis had lost it', () => {
    const told = held().lost('a', 'one', { at: 100, until: 300, reason: 'takenOver' });
    expect(losses(told.history).violations).toHaveLength(1);
    told.fault('flush', { from: 50, to: 51, victims: ['a', 'b'], breaksPromises: true });
    expect(losses(told.history)).toMatchObject({ violations: [], shown: [{ at: 100 }] });
    const forgotten = held()
      .lost('a', 'one', { at: 100, until: 300, reason: 'takenOver' })
      .hold('b', 'other', { from: 0, to: 1, token: 32 })
      .fault('kill of three', { from: 90, to: 200, victims: ['a', 'b'] });
    expect(losses(forgotten.history).violations).toHaveLength(1);
    expect(losses(forgotten.history, { ...BOUNDS, splitsVotes: true }).violations).toEqual([]);
    const late = held().lost('a', 'one', { at: 305, until: 300, reason: 'takenOver' });
    expect(losses(late.history).violations).toEqual([]);
  });
});
