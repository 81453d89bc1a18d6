import { reentry } from './reentry.js';
import { type Held, story } from '../story.js';

const outer = { as: 'outer', mode: 'reentrant', from: 0, to: 50, token: 32 } as const satisfies Held;
const inner = { mode: 'reentrant', inside: 'outer', from: 10, to: 20, token: 32 } as const satisfies Held;

describe('reentry', () => {
  it('accepts one that enters again and leaves', () => {
    const { history } = story()
      .hold('a', 'stock', outer)
      .hold('a', 'stock', inner)
      .look('a', 'outer', { at: 30, held: true });
    expect(reentry(history)).toEqual({ rule: 'reentry', looked: 2, violations: [] });
  });

  it('finds another token', () => {
    const { history } = story()
      .hold('a', 'stock', outer)
      .hold('a', 'stock', { ...inner, token: 64 });
    expect(reentry(history).violations).toHaveLength(1);
  });

  it('finds one that entered what was released, or lost', () => {
    const released = story()
      .hold('a', 'stock', outer)
      .hold('a', 'stock', { ...inner, from: 60, to: 70 });
    expect(reentry(released.history).violations).toHaveLength(1);
    const lost = story().hold('a', 'stock', outer).lost('a', 'outer', { at: 5, until: 5 }).hold('a', 'stock', inner);
    expect(reentry(lost.history).violations).toHaveLength(1);
  });

  it('one that entered in time keeps it for others', () => {
    const { history } = story()
      .hold('a', 'stock', outer)
      .hold('a', 'stock', { ...inner, to: 80 })
      .hold('a', 'stock', { ...inner, from: 60, to: 70 });
    expect(reentry(history).violations).toEqual([]);
  });

  it('finds an outer lease that is gone after the inner one was released', () => {
    const gone = story()
      .hold('a', 'stock', outer)
      .hold('a', 'stock', inner)
      .look('a', 'outer', { at: 30, held: false });
    expect(reentry(gone.history).violations).toHaveLength(1);
    gone.lost('a', 'outer', { at: 29, until: 29 });
    expect(reentry(gone.history).violations).toEqual([]);
  });
});
