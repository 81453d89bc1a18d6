import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOMS as ROOMS_OF_LIB } from '../../../.dependency-cruiser.mjs';
import { ROOMS, roomOf, suitesFor } from '../../../scripts/selection/rooms.mjs';
import { ALL, STACKS, SUITES, suiteOf, testPatterns } from '../../../scripts/selection/suites.mjs';
import { root } from '../../../scripts/setup.mjs';
import { repositoryFiles } from '../../support/process/repository-files.js';

const files = repositoryFiles();

describe('the room of a file', () => {
  it.each([
    ['README.md', 'README.md'],
    ['lib/index.ts', 'lib/'],
    ['lib/redis/keys.ts', 'lib/redis/'],
    ['lib/redis/lua/include/queue.lua', 'lib/redis/lua/**'],
    ['lib/testing/contract/locks/tokens.ts', 'lib/testing/contract/**'],
    ['lib/testing/jobs/a.ts', 'lib/testing/**'],
    ['test/nest/nest-apps.ts', 'test/nest/nest-apps.ts'],
    ['tools/chaos/cron/jobs/seed.ts', 'tools/chaos/cron/**'],
    ['tools/chaos/world/world.ts', 'tools/chaos/**'],
  ])('%s is in %s', (file, room) => expect(roomOf(file)).toBe(room));

  it.each([
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'jest.config.mjs',
    '.ci/run',
    'scripts/test.mjs',
    'scripts/selection/rooms.mjs',
    'tools/package/build.mjs',
    'test/support/redis/redis-server.ts',
    'lib/core/new-room/a.ts',
    'lib/nest/new-room/a.ts',
    'test/new-room/a.test.ts',
    'test/stacks/new-stack/a.test.ts',
    'new-room/a.ts',
    'new-file',
  ])('is not known of %s, so that everything runs', (file) => {
    expect(roomOf(file)).toBeUndefined();
    expect(suitesFor(file)).toEqual(ALL);
  });
});

describe('the table of rooms', () => {
  it.each(Object.keys(ROOMS_OF_LIB))('has a line for lib/%s', (room) => {
    expect(roomOf(`lib/${room}/some.ts`)).toBeDefined();
  });

  it.each(Object.entries(ROOMS))('%s is there, and its suites are', (room, suites) => {
    expect(files.some((file) => roomOf(file) === room)).toBe(true);
    expect(suites.filter((suite) => !ALL.includes(suite))).toEqual([]);
  });

  it('leaves out what can break everything, and nothing else', () => {
    const unknown = files.filter((file) => roomOf(file) === undefined && !/^(\.ci|scripts)\//.test(file));
    const rooms = [...new Set(unknown.map((file) => file.split('/').slice(0, 2).join('/')))].toSorted();
    expect(rooms).toEqual([
      '.dependency-cruiser.mjs',
      '.editorconfig',
      '.gitignore',
      '.luacheckrc',
      '.oxfmtrc.json',
      '.oxlintrc.json',
      'jest.config.mjs',
      'nest-cli.json',
      'package-lock.json',
      'package.json',
      'renovate.json',
      'test/support',
      'tools/format.mjs',
      'tools/lua',
      'tools/package',
      'tsconfig.esm.json',
      'tsconfig.json',
    ]);
  });
});

describe('the suites', () => {
  it('know every stack', () => {
    const entries = readdirSync(join(root, 'test/stacks'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory() && entry.name !== 'node_modules');
    expect(folders.map(({ name }) => name).toSorted()).toEqual(STACKS.toSorted());
  });

  it.each(Object.entries(SUITES).flatMap(([suite, tests]) => tests.map((test) => [suite, test] as const)))(
    '%s has tests: %s',
    (suite, tests) => {
      const [pattern] = testPatterns([suite]).filter((one) => one.includes(tests.replaceAll('.', '\\.')));
      const found = files.filter((file) => file.endsWith('.test.ts') && new RegExp(pattern!).test(`/${file}`));
      expect(found).not.toEqual([]);
      expect(new Set(found.map((file) => suiteOf(file)))).toEqual(new Set([suite]));
    },
  );

  const sources = new Map<string, readonly string[]>();
  /** What the file imports by a path, but for types: the compiler looks at these for each change. */
  function importsOf(file: string): readonly string[] {
    const known = sources.get(file);
    if (known !== undefined) return known;
    const text = readFileSync(join(root, file), 'utf8').replaceAll(/^import type [^;]*;/gm, '');
    const named = text.matchAll(/(?:from|import\(|new URL\(|import) ?'(\.[^']+)'/g);
    const paths = [...named].map(([, name]) => relative(root, join(root, dirname(file), name!)));
    const found = paths
      .flatMap((path) => [path, path.replace(/\.js$/, '.ts')])
      .filter((path) => /\.m?[jt]s$/.test(path) && existsSync(join(root, path)));
    sources.set(file, found);
    return found;
  }
  /** Lists the parts of the long form. A test runs the one that it names. */
  const LIST = 'tools/chaos/run/parts.ts';
  /** Every test names something of these, such as an error, an id or a script, and is for another room. */
  const UNDER_ALL = [
    'lib/',
    'lib/core/',
    'lib/core/api/',
    'lib/core/util/',
    'lib/core/store/',
    'lib/redis/',
    'lib/redis/redis-job-store.ts',
    'lib/redis/script/',
  ];
  /** What the tests are made of: their files, and what these use, outside of lib and one step into it. */
  function partsOf(own: readonly string[]): readonly string[] {
    const parts = new Set(own);
    for (const file of parts) {
      // What test/support uses of lib serves every test.
      const isOfAll = roomOf(file) === undefined;
      if (file.startsWith('lib/') || file === LIST) continue;
      for (const used of importsOf(file)) {
        if (!used.startsWith('lib/') || !(isOfAll || UNDER_ALL.includes(roomOf(used)!))) parts.add(used);
      }
    }
    return [...parts];
  }

  const foldersOf = { ...SUITES, model: ['tools/model/'], consumers: ['test/package/'] };
  it.each(Object.entries(foldersOf))('%s runs when a file changes that it is made of', (suite, tests) => {
    const own = files.filter((file) => /\.m?[jt]s$/.test(file) && tests.some((test) => file.startsWith(test)));
    expect(partsOf(own).filter((file) => !suitesFor(file).includes(suite))).toEqual([]);
  });
});
