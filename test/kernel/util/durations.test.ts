import { formatDuration } from '../../../lib/kernel/util/durations.js';

describe('a duration in a message', () => {
  it.each([
    [0, '0 ms'],
    [-3, '0 ms'],
    [300.6, '301 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [1_840, '1.8 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [42_000, '42 s'],
    [119_499, '119 s'],
    [119_500, '2 min'],
    [7_199_999, '2 h'],
    [3 * 3_600_000, '3 h'],
    [Infinity, 'ever'],
  ])('of %d ms is %p', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
