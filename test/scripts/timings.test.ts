import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { inWords, median, readTimings, slowerThanKept, withMeasured } from '../../scripts/timings/kept.mjs';

const TIMINGS = { cores: 2, commands: { 'npm test': [100, 80, 90] }, files: {} };

const testFiles = ['test', 'tools', 'sample-app/test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !/node_modules|package\/consumers/.test(name))
    .map((name) => `${folder}/${name}`),
);

describe('the timings that are kept', () => {
  // They order the files, and say how long a command takes. Where the tests are others by now, both say little.
  it('are of the tests that there are', () => {
    const kept = new Set(Object.keys(readTimings().files));
    const known = testFiles.filter((file) => kept.has(file));
    const hint = 'Measure again: npm run timings';
    expect({ hint, known: known.length / testFiles.length >= 2 / 3 }).toEqual({ hint, known: true });
    expect({ hint, exist: known.length / kept.size >= 2 / 3 }).toEqual({ hint, exist: true });
  });

  it('are those of the table in CONTRIBUTING.md', () => {
    const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
    expect(page).toBe(withMeasured(page, readTimings()));
  });

  it('are shown in the last column of the row of the command', () => {
    const page = '| Command | What | On two cores |\n| `npm test` | Tests | a while       |\n| `npm x` | | 1 s |';
    expect(withMeasured(page, TIMINGS)).toBe(page.replace('a while      ', '1 min 30 s   '));
  });
});

describe('a command that takes longer than it did', () => {
  it('says so past one and a half times the median', () => {
    const of = { timings: TIMINGS, cores: 2 };
    expect(slowerThanKept('npm test', 135, of)).toBeUndefined();
    expect(slowerThanKept('npm test', 136, of)).toContain(
      'npm test took 2 min 16 s, and 1 min 30 s when it was measured on 2 cores.',
    );
  });

  it('says nothing on a smaller machine, or where it was never measured', () => {
    expect(slowerThanKept('npm test', 500, { timings: TIMINGS, cores: 1 })).toBeUndefined();
    expect(slowerThanKept('npm run demo', 500, { timings: TIMINGS, cores: 2 })).toBeUndefined();
  });
});

it('a median is of an even number of runs, too', () => {
  expect([median([3]), median([9, 1, 2]), median([4, 1, 2, 9])]).toEqual([3, 2, 3]);
  expect([59.6, 60, 61, 40].map(inWords)).toEqual(['1 min', '1 min', '1 min 1 s', '40 s']);
});
