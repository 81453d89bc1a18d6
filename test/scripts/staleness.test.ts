import { mkdir, mkdtemp, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isBuildStale } from '../../scripts/setup/dist.mjs';
import { packagesState } from '../../scripts/setup/packages.mjs';

describe('what the set-up has to do again', () => {
  let project: string;

  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), 'project-'));
  });
  afterEach(() => rm(project, { recursive: true, force: true }));

  async function write(file: string, content: unknown, at?: Date) {
    await mkdir(dirname(join(project, file)), { recursive: true });
    await writeFile(join(project, file), JSON.stringify(content));
    if (at) await utimes(join(project, file), at, at);
  }

  describe('npm packages', () => {
    const locked = (packages: object) =>
      write('package-lock.json', { packages: { '': { name: 'project' }, ...packages } });
    const installed = (packages: object) => write('node_modules/.package-lock.json', { packages });
    const a = { 'node_modules/a': { version: '1.0.0' } };

    it('are missing without node_modules', async () => {
      await locked(a);
      expect(await packagesState(project)).toBe('missing');
    });

    it('are missing while npm writes down what it has installed, as another command may see it', async () => {
      await locked(a);
      await installed(a);
      const file = join(project, 'node_modules/.package-lock.json');
      await truncate(file, 20);
      expect(await packagesState(project)).toBe('missing');
    });

    it('are stale while npm writes the lock file', async () => {
      await locked(a);
      await installed(a);
      await truncate(join(project, 'package-lock.json'), 20);
      expect(await packagesState(project)).toBe('stale');
    });

    it('are current when each has the version of the lock file', async () => {
      await locked(a);
      await installed(a);
      expect(await packagesState(project)).toBe('current');
    });

    it.each([
      ['of another version', { 'node_modules/a': { version: '2.0.0' } }],
      ['absent', {}],
      ['more than the lock file has', { ...a, 'node_modules/b': { version: '1.0.0' } }],
    ])('are stale when one is %s', async (_name, packages) => {
      await locked(a);
      await installed(packages);
      expect(await packagesState(project)).toBe('stale');
    });

    it('are current without the binaries of other platforms', async () => {
      await locked({ ...a, 'node_modules/a-win32': { version: '1.0.0', optional: true } });
      await installed(a);
      expect(await packagesState(project)).toBe('current');
    });
  });

  describe('the build', () => {
    const early = new Date(2020, 1, 1);
    const late = new Date(2020, 1, 2);

    beforeEach(async () => {
      await write('lib/core/a.ts', '', early);
      await write('package.json', {}, early);
      for (const folder of ['lib/core', 'lib']) await utimes(join(project, folder), early, early);
    });
    const build = async (at: Date) => {
      for (const format of ['esm', 'cjs']) await write(`dist/${format}/package.json`, {}, at);
    };

    it('is stale without dist', async () => {
      expect(await isBuildStale(project)).toBe(true);
    });

    it('is stale with half of it', async () => {
      await write('dist/esm/package.json', {}, late);
      expect(await isBuildStale(project)).toBe(true);
    });

    it('is current when nothing changed since', async () => {
      await build(late);
      expect(await isBuildStale(project)).toBe(false);
    });

    it('is stale when a source changed since', async () => {
      await build(late);
      await write('lib/core/a.ts', 'changed');
      expect(await isBuildStale(project)).toBe(true);
    });

    it('is stale when a source was deleted since', async () => {
      await build(late);
      await rm(join(project, 'lib/core/a.ts'));
      expect(await isBuildStale(project)).toBe(true);
    });
  });
});
