import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jest } from '../../../scripts/jest.mjs';
import { root } from '../../../scripts/setup.mjs';

const FILES = {
  'shared.mjs': `export const loaded = { times: (globalThis.timesLoaded = (globalThis.timesLoaded ?? 0) + 1) };`,
  'a/one.test.mjs': `
    import { loaded } from '../shared.mjs';
    beforeEach(() => { loaded.hooks = (loaded.hooks ?? 0) + 1; });
    describe('a block', () => {
      it('passes', () => expect(loaded.times).toBe(1));
      it('fails', () => expect(loaded.hooks).toBe('two'));
    });
    it.skip('is skipped', () => undefined);`,
  'a/two.test.mjs': `
    import { loaded } from '../shared.mjs';
    it('loads nothing again, and has no hook of another file', () => expect(loaded).toEqual({ times: 1, hooks: 2 }));
    it('fails as well', () => { throw new Error('of the second file'); });`,
  'a/broken.test.mjs': `throw new Error('while it is loaded');`,
  'a/no-guest.test.mjs': `
    import { jest } from '@jest/globals';
    import { loaded } from '../shared.mjs';
    jest.useFakeTimers();
    it('is alone', () => expect(loaded).toEqual({ times: 1 }));`,
  'b/alone.test.mjs': `it('ends', () => undefined);`,
};

interface FileResult {
  name: string;
  status: string;
  message: string;
  assertionResults: { fullName: string; status: string; ancestorTitles: string[] }[];
}

describe('test files that run together', () => {
  let folder: string;
  let results: Map<string, FileResult>;
  const run = (...args: string[]) => {
    const config = {
      rootDir: folder,
      displayName: 'unit',
      testMatch: ['**/*.test.mjs'],
      transform: {},
      runner: join(root, 'test/support/together/runner.mjs'),
    };
    const argv = jest('--config', JSON.stringify(config), '--json', '--runInBand', ...args);
    const { stdout, stderr } = spawnSync(process.execPath, argv, { cwd: root, encoding: 'utf8' });
    if (stdout === '') throw new Error(stderr);
    const { testResults } = JSON.parse(stdout) as { testResults: FileResult[] };
    return new Map(testResults.map((result) => [result.name.slice(folder.length + 1), result]));
  };
  const casesOf = (file: string) =>
    results.get(file)?.assertionResults.map(({ fullName, status }) => `${fullName}: ${status}`);

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'together-'));
    for (const name of ['a', 'b', 'node_modules/@jest']) mkdirSync(join(folder, name), { recursive: true });
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
    results = run();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('load what they import once, and keep their hooks to themselves', () => {
    expect(casesOf('a/two.test.mjs')).toEqual([
      'loads nothing again, and has no hook of another file: passed',
      'fails as well: failed',
    ]);
  });

  it('are told to Jest one by one, each with its own failures', () => {
    expect([...results.keys()].sort()).toEqual(
      Object.keys(FILES)
        .filter((name) => name.includes('test'))
        .sort(),
    );
    expect(casesOf('a/one.test.mjs')).toEqual([
      'a block passes: passed',
      'a block fails: failed',
      'is skipped: pending',
    ]);
    const { message, assertionResults } = results.get('a/one.test.mjs')!;
    expect(assertionResults[0]!.ancestorTitles).toEqual(['a block']);
    expect(message).toContain('a block › fails');
    expect(message).toContain('one.test.mjs:6');
    expect(message).not.toContain('of the second file');
    expect(results.get('b/alone.test.mjs')!.status).toBe('passed');
  });

  it('fail alone where one cannot be loaded', () => {
    expect(results.get('a/broken.test.mjs')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('while it is loaded') as string,
    });
  });

  it('are not joined by a file that replaces timers or modules', () => {
    expect(casesOf('a/no-guest.test.mjs')).toEqual(['is alone: passed']);
  });

  it('are as without the others where a pattern of names is given', () => {
    const named = run('--testNamePattern', '^(?:a block passes|fails as well)$');
    const ran = [...named.values()].flatMap(({ assertionResults }) => assertionResults);
    const names = ran.filter(({ status }) => status !== 'pending').map(({ fullName }) => fullName);
    // A file that failed in the run before comes first.
    expect(names.toSorted()).toEqual(['a block passes', 'fails as well']);
  });
});
