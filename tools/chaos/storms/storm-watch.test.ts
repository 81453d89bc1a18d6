import { BusiestWindow } from './storm-watch.js';

describe('the busiest tenth of a second', () => {
  const busiestOf = (...counts: [from: number, to: number, count: number][]): number => {
    const busiest = new BusiestWindow(100);
    for (const [from, to, count] of counts) busiest.add(from, to, count);
    return busiest.most;
  };

  it('has all that came within it', () => {
    expect(busiestOf([0, 40, 10], [40, 60, 5], [60, 100, 20])).toBe(35);
    expect(busiestOf([0, 50, 10], [1_000, 1_050, 30], [2_000, 2_050, 20])).toBe(30);
  });

  it('has a part of those that were counted over a longer time', () => {
    expect(busiestOf([0, 1_000, 50])).toBe(5);
    expect(busiestOf([0, 80, 80], [80, 140, 6])).toBe(80);
    expect(busiestOf([0, 80, 40], [80, 140, 60])).toBe(80);
  });

  it('has those that came in one moment', () => {
    expect(busiestOf([10, 10, 7], [10, 60, 1])).toBe(8);
  });
});
