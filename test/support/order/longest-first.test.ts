import { join } from 'node:path';
import { root } from '../../../scripts/setup.mjs';
import { readTimings } from '../../../scripts/timings/kept.mjs';
import LongestFirst, { rankOf } from './longest-first.mjs';

describe('the order of test files', () => {
  const context = { config: { cache: false }, hasteFS: { getSize: () => 100 } };
  const order = (...files: string[]) => {
    const tests = files.map((file) => ({ path: join(root, file), context }));
    const sorted = new LongestFirst().sort(tests) as typeof tests;
    return sorted.map(({ path }) => path.slice(root.length));
  };
  const measured = Object.entries(readTimings().files).sort(([, one], [, other]) => other - one);
  const [longest, next, shortest] = [measured[0]![0], measured[1]![0], measured.at(-1)![0]];

  it('begins with the longest, and has a new one before those that take no time', () => {
    const expected = [longest, next, 'test/new.test.ts', shortest];
    expect(order('test/new.test.ts', shortest, next, longest)).toEqual(expected);
  });

  it('begins with a file that failed in the run before', () => {
    const failed = { path: join(root, 'test/failed.test.ts'), context };
    class AfterAFailure extends LongestFirst {
      hasFailed({ path }: { path: string }) {
        return path === failed.path;
      }
    }
    const others = [longest, next].map((file) => ({ path: join(root, file), context }));
    const [first] = new AfterAFailure().sort([others[0], failed]) as [typeof failed];
    expect(first).toBe(failed);
    // Of files that run together, it is all of them.
    expect([rankOf([others[1], failed]), rankOf(others)]).toEqual([
      Infinity,
      rankOf([others[0]]) + rankOf([others[1]]),
    ]);
  });
});
