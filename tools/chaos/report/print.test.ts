import { complaintsOf, table } from './print.js';
import { atLeast, hasPassed, none } from './row.js';

describe('the table', () => {
  it('says what was to be, what was, and what was missed', () => {
    const rows = [atLeast('holds', 20_000, 21_345, ' of all kinds'), none('violations', 2)];
    expect(table({ rows }).split('\n').slice(2)).toEqual([
      '| holds | at least 20,000 | 21,345 of all kinds |',
      '| violations | 0 | 2 **missed** |',
    ]);
  });

  it('passes where nothing was missed and nobody complains', () => {
    const rows = [atLeast('holds', 1, 1)];
    expect(hasPassed({ rows, complaints: [] })).toBe(true);
    expect(hasPassed({ rows, complaints: ['an overlap'] })).toBe(false);
    expect(hasPassed({ rows: [...rows, none('violations', 1)], complaints: [] })).toBe(false);
  });

  it('cuts a long list of complaints short, and says so', () => {
    const complaints = Array.from({ length: 50 }, (_, index) => `complaint ${index}`);
    expect(complaintsOf({ rows: [], complaints })).toMatch(/complaint 29\nand 20 more$/);
  });
});
