import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../scripts/setup.mjs';
import LongestFirst, { LONGEST } from './longest-first.mjs';

it.each(LONGEST)('%s is a file', (file) => {
  expect(existsSync(join(root, file))).toBe(true);
});

describe('the order of test files', () => {
  const context = { config: { cache: false }, hasteFS: { getSize: () => 100 } };
  const order = (...files: string[]) => {
    const tests = files.map((file) => ({ path: join(root, file), context }));
    const sorted = new LongestFirst().sort(tests) as typeof tests;
    return sorted.map(({ path }) => path.slice(root.length));
  };
  const [longest, next] = LONGEST as [string, string];

  it('begins with the longest', () => {
    expect(order('test/a.test.ts', next, longest)).toEqual([longest, next, 'test/a.test.ts']);
  });

  it('begins with a file that failed in the run before', () => {
    const failed = { path: join(root, 'test/failed.test.ts'), context };
    class AfterAFailure extends LongestFirst {
      hasFailed({ path }: { path: string }) {
        return path === failed.path;
      }
    }
    const [first] = new AfterAFailure().sort([{ path: join(root, longest), context }, failed]) as [typeof failed];
    expect(first).toBe(failed);
  });
});
