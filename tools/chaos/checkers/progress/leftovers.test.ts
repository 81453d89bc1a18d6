import { crashes } from '../crashes.js';
import { leftovers } from './leftovers.js';
import { story } from '../story.js';

const nothing = {
  type: 'leftovers',
  process: 'chaos',
  at: 100,
  keys: ['lock:fence'],
  clients: [],
  channels: [],
} as const;

describe('leftovers', () => {
  it('accepts the fence, and everybody closed', () => {
    const told = story().closes('a', 10, 20).add(nothing, { type: 'open', process: 'a', at: 21, handles: [] });
    expect(leftovers(told.history)).toEqual({ rule: 'leftovers', looked: 3, violations: [] });
  });

  it.each([
    { keys: ['lock:fence', 'lock:{stock}'] },
    { keys: ['lock:{fence}:waiters'] },
    { clients: ['a'] },
    { channels: ['lock:inbox:a'] },
  ])('finds %j', (left) => {
    expect(leftovers(story().add({ ...nothing, ...left }).history).violations).toHaveLength(1);
  });

  it('finds what keeps a process alive', () => {
    const told = story().add({ type: 'open', process: 'a', at: 21, handles: ['Timeout'] });
    expect(leftovers(told.history).violations).toHaveLength(1);
  });

  it('finds a process that never had closed, unless it died', () => {
    const told = story().closes('a', 10);
    expect(leftovers(told.history).violations).toHaveLength(1);
    expect(leftovers(told.died('a', 15).history).violations).toEqual([]);
  });
});

describe('crashes', () => {
  it('finds any', () => {
    const told = story().closes('a', 10);
    expect(crashes(told.history)).toEqual({ rule: 'crashes', looked: 1, violations: [] });
    told.add({ type: 'crash', process: 'a', at: 5, error: 'unhandled rejection' });
    expect(crashes(told.history).violations).toHaveLength(1);
  });
});
