import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { readRelease } from '../../tools/release/read-release.mjs';

const CHANGELOG = `# Changelog

## [1.3.0] - unreleased

### Added

- A door.

## [1.2.3] - 2026-01-31

### Fixed

- A window.

- A roof.

## [1.2.2] - 2025-12-01

- A wall.
`;

type Sources = Parameters<typeof readRelease>[0];

function release({ version = '1.2.3', ...rest }: Partial<Sources> & { version?: string } = {}) {
  const lock = { version, packages: { '': { version } } };
  const manifest = { version, repository: { url: 'https://github.com/shop/locks' } };
  return readRelease({ tag: `v${version}`, manifest, lock, changelog: CHANGELOG, ...rest });
}

describe('what a tag releases', () => {
  it('is the section of the changelog, for the users of latest', () => {
    expect(release()).toEqual({
      version: '1.2.3',
      distTag: 'latest',
      notes: '### Fixed\n\n- A window.\n\n- A roof.',
    });
  });

  it('is the last section of the file, too', () => {
    expect(release({ version: '1.2.2' }).notes).toBe('- A wall.');
  });

  it('goes to next where it is a prerelease', () => {
    const changelog = '## [2.0.0-rc.1] - 2026-02-01\n\n- A garden.\n';
    expect(release({ version: '2.0.0-rc.1', changelog }).distTag).toBe('next');
  });

  it.each<[string, Partial<Sources> & { version?: string }, string]>([
    ['a tag of another version', { tag: 'v1.2.4' }, 'The tag is v1.2.4, but package.json has the version 1.2.3.'],
    ['a tag without its v', { tag: '1.2.3' }, 'The tag is 1.2.3, but'],
    ['a branch', { tag: 'main' }, 'The tag is main, but'],
    ['a version that is none', { version: '1.2' }, '"1.2", which is no semantic version'],
    ['a version without a heading', { version: '1.2.30' }, 'no heading "## [1.2.30] - <date>"'],
    ['an unreleased version', { version: '1.3.0' }, 'dates 1.3.0 as "unreleased"'],
    ['a day that does not exist', { changelog: '## [1.2.3] - 2026-02-31\n\n- A.' }, 'as "2026-02-31"'],
    ['a section without a word', { changelog: '## [1.2.3] - 2026-01-31\n\n### Added\n\n## [1.2.2]' }, 'says nothing'],
    [
      'a stale lock file',
      { lock: { version: '1.2.2', packages: { '': { version: '1.2.3' } } } },
      'has the version 1.2.2',
    ],
    [
      'a half-stale lock file',
      { lock: { version: '1.2.3', packages: { '': {} } } },
      'has the packages[""].version undefined',
    ],
  ])('is not %s', (_what, sources, message) => {
    expect(() => release(sources)).toThrow(message);
  });

  const inRepository = (url?: string) => ({
    manifest: { version: '1.2.3', ...(url && { repository: { url } }) },
    repository: 'shop/locks',
  });

  it.each(['git+https://github.com/shop/locks.git', 'git@github.com:Shop/locks.git', 'https://github.com/shop/locks'])(
    'comes from the repository that package.json names: %s',
    (url) => {
      expect(release(inRepository(url)).version).toBe('1.2.3');
    },
  );

  it.each([undefined, 'git+https://github.com/shop/locks-fork.git', 'https://github.com.example.org/shop/locks'])(
    'does not come from another repository: %s',
    (url) => {
      expect(() => release(inRepository(url))).toThrow('has to name the repository');
    },
  );

  it('is nothing as long as package.json names no repository, wherever that is asked', () => {
    const { manifest } = inRepository();
    expect(() => release({ manifest })).toThrow('"git+https://github.com/<owner>/<name>.git", not ""');
  });
});

describe('tools/release/check.mjs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'release-check-'));
  const output = join(folder, 'output');
  const repository = { url: 'git+https://github.com/shop/locks.git' };

  beforeEach(() => {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ version: '1.2.3', repository }));
    writeFileSync(
      join(folder, 'package-lock.json'),
      JSON.stringify({ version: '1.2.3', packages: { '': { version: '1.2.3' } } }),
    );
    writeFileSync(join(folder, 'CHANGELOG.md'), CHANGELOG);
    writeFileSync(output, 'before=1\n');
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  const check = (args: string[], env = {}) =>
    spawnSync(process.execPath, [join(root, 'tools/release/check.mjs'), ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { GITHUB_OUTPUT: output, GITHUB_REPOSITORY: 'shop/locks', ...env },
    });

  it('leaves the notes in a file and the dist-tag for the next job', () => {
    expect(check(['v1.2.3', 'notes.md'])).toMatchObject({
      status: 0,
      stdout: '1.2.3 can be published as latest\n',
      stderr: '',
    });
    expect(readFileSync(join(folder, 'notes.md'), 'utf8')).toBe('### Fixed\n\n- A window.\n\n- A roof.\n');
    expect(readFileSync(output, 'utf8')).toBe('before=1\ndist-tag=latest\n');
  });

  it('fails with one line where something disagrees, and leaves nothing', () => {
    expect(check(['v1.2.4', 'none.md'])).toMatchObject({
      status: 1,
      stdout: '',
      stderr: 'The tag is v1.2.4, but package.json has the version 1.2.3.\n',
    });
    expect(check(['v1.2.3'], { GITHUB_REPOSITORY: 'shop/fork' }).status).toBe(1);
    expect(readFileSync(output, 'utf8')).toBe('before=1\n');
    expect(() => readFileSync(join(folder, 'none.md'))).toThrow('ENOENT');
  });

  it('fails without a tag', () => {
    expect(check([]).status).toBe(2);
  });
});
