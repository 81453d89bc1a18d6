import { sweep } from '../../../lib/kernel/util/objects.js';

/** Adds an entry with a lifetime of 10 steps, at each of many steps. @returns the maximum number of entries */
function mostOf(entries: Map<string, number>, steps: number): number {
  let most = 0;
  for (let now = 0; now < steps; now++) {
    sweep(entries, (until) => until <= now);
    entries.set(`key ${now}`, now + 10);
    most = Math.max(most, entries.size);
  }
  return most;
}

describe('a map that is swept', () => {
  it('forgets expired entries, even behind one that lives for long', () => {
    const entries = new Map([['lives for long', Infinity]]);
    expect(mostOf(entries, 10_000)).toBeLessThan(50);
    expect(entries.has('lives for long')).toBe(true);
  });

  it('does so while many live, with at most twice the room', () => {
    const entries = new Map(Array.from({ length: 1_000 }, (_, n) => [`lives ${n}`, Infinity] as const));
    expect(mostOf(entries, 20_000)).toBeLessThan(2_000);
    expect(entries.has('lives 0')).toBe(true);
  });

  it('removes each with its own callback', () => {
    const entries = new Map([
      ['over', 0],
      ['alive', 1],
    ]);
    const removed: unknown[] = [];
    const remove = (...entry: unknown[]): void => void removed.push(entry);
    sweep(entries, (until) => until === 0, remove);
    expect(removed).toEqual([
      ['over', 0],
      ['over', 0],
      ['over', 0],
    ]);
  });
});
