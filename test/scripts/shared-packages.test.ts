import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { packagesState } from '../../scripts/setup/packages.mjs';
import { sharePackages } from '../../scripts/setup/shared-packages.mjs';

interface Entry {
  version: string;
  integrity: string;
  bin?: Record<string, string>;
  optional?: boolean;
  os?: string[];
}

const entry = (name: string, more: Partial<Entry> = {}): Entry => ({
  version: '1.0.0',
  integrity: `sha512-${name}`,
  ...more,
});

describe('packages that are installed elsewhere', () => {
  let place: string;
  let folder: string;
  let other: string;

  beforeEach(async () => {
    place = await realpath(await mkdtemp(join(tmpdir(), 'shared-')));
    [folder, other] = [join(place, 'stack'), join(place, 'project')];
  });
  afterEach(() => rm(place, { recursive: true, force: true }));

  async function write(file: string, text: string) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  const lock = (packages: Record<string, Entry>) =>
    write(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages: { '': {}, ...packages } }));

  async function install(packages: Record<string, Entry>) {
    for (const path of Object.keys(packages)) await write(join(other, path, 'lib/index.js'), `// ${path}`);
    await write(join(other, 'node_modules/.package-lock.json'), JSON.stringify({ packages }));
  }

  const isThere = (path: string) => existsSync(join(folder, path));
  const inodeOf = async (path: string) => (await stat(path)).ino;

  it('are shared file by file, wherever they are, and with their programs', async () => {
    const program = entry('a', { bin: { run: 'lib/index.js' } });
    await install({ 'node_modules/x/node_modules/@scope/a': program });
    await lock({ 'node_modules/@scope/a': program });
    expect(sharePackages(folder, [join(place, 'none'), other])).toBe(true);
    expect(await inodeOf(join(folder, 'node_modules/@scope/a/lib/index.js'))).toBe(
      await inodeOf(join(other, 'node_modules/x/node_modules/@scope/a/lib/index.js')),
    );
    expect(await realpath(join(folder, 'node_modules/.bin/run'))).toBe(
      join(folder, 'node_modules/@scope/a/lib/index.js'),
    );
    expect(await packagesState(folder)).toBe('current');
  });

  it('come without the packages in them, which the lock file names', async () => {
    await install({ 'node_modules/a': entry('a'), 'node_modules/a/node_modules/b': entry('b') });
    await lock({ 'node_modules/a': entry('a'), 'node_modules/b': entry('b') });
    expect(sharePackages(folder, [other])).toBe(true);
    expect(isThere('node_modules/a/node_modules')).toBe(false);
    expect(await readFile(join(folder, 'node_modules/b/lib/index.js'), 'utf8')).toContain('a/node_modules/b');
  });

  it('are not shared with another hash, nor into a package that is not there', async () => {
    await install({ 'node_modules/a': entry('another a'), 'node_modules/b': entry('b'), 'node_modules/c': entry('c') });
    await lock({
      'node_modules/a': entry('a'),
      'node_modules/a/node_modules/b': entry('b'),
      'node_modules/c': entry('c'),
    });
    expect(sharePackages(folder, [other])).toBe(false);
    expect(['a', 'c'].map((name) => isThere(`node_modules/${name}`))).toEqual([false, true]);
    expect(await packagesState(folder)).toBe('stale');
  });

  it('leave nothing to npm that is for another platform', async () => {
    const ofAnother = entry('b', { optional: true, os: ['none'] });
    await install({ 'node_modules/a': entry('a') });
    await lock({ 'node_modules/a': entry('a'), 'node_modules/b': ofAnother });
    expect(sharePackages(folder, [other])).toBe(true);
    await rm(join(folder, 'node_modules'), { recursive: true });
    await lock({ 'node_modules/a': entry('a'), 'node_modules/b': { ...ofAnother, os: [process.platform] } });
    expect(sharePackages(folder, [other])).toBe(false);
  });
});
