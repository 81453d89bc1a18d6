import { permits } from './permits.js';
import { story } from '../story.js';

const two = { mode: 'semaphore', total: 2 } as const;

describe('permits', () => {
  it('accepts as many as there are', () => {
    const { history } = story()
      .hold('a', 'slots', { ...two, from: 0, to: 10, token: 32 })
      .hold('b', 'slots', { ...two, from: 0, to: 20, token: 64 })
      .hold('c', 'slots', { ...two, from: 10, to: 30, token: 96 });
    expect(permits(history)).toEqual({ rule: 'permits', looked: 3, violations: [] });
  });

  it('finds one too many', () => {
    const { history } = story()
      .hold('a', 'slots', { ...two, from: 0, to: 10, token: 32 })
      .hold('b', 'slots', { ...two, from: 0, to: 20, token: 64 })
      .hold('c', 'slots', { ...two, from: 9, to: 30, token: 96 });
    expect(permits(history).violations).toHaveLength(1);
    expect(permits(history).violations[0]!.what).toContain('3 permits of "slots" were held, and there are 2');
  });

  it('counts those who take several', () => {
    const { history } = story()
      .hold('a', 'slots', { ...two, from: 0, to: 10, token: 32 })
      .hold('b', 'slots', { ...two, permits: 2, from: 9, to: 20, token: 64 });
    expect(permits(history).violations).toHaveLength(1);
  });

  it('shows what happens where Redis has lost its data', () => {
    const { history } = story()
      .fault('redis-kill', { from: 5, to: 8, victims: ['a', 'b'], breaksPromises: true })
      .hold('a', 'slots', { ...two, permits: 2, from: 0, to: 10, token: 32 })
      .hold('b', 'slots', { ...two, permits: 2, from: 9, to: 20, token: 64 });
    expect(permits(history)).toMatchObject({ violations: [], shown: [{ at: 9 }] });
  });
});
