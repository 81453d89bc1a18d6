import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { followPackedLinks } from '../package/links.mjs';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

/** What npm would pack, without dist/, which may be stale or missing here. */
function packedFiles(): string[] {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const output = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [{ files }] = JSON.parse(output) as [{ files: { path: string }[] }];
  return files.map(({ path }) => path).filter((path) => !path.startsWith('dist/'));
}

describe('the packed files', () => {
  const packed = packedFiles();
  const sources = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `lib/${name}`);
  const read = (paths: readonly string[]) =>
    new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));

  it('have the pages for users, and no program of theirs', () => {
    expect(packed).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'LICENSE', 'SECURITY.md', 'docs/guide/getting-started.md']),
    );
    expect(packed.filter((path) => path.endsWith('.ts'))).toEqual([]);
  });

  it('have the files for Prometheus and Grafana', () => {
    const folder = 'docs/operations/prometheus';
    expect(packed).toEqual(
      expect.arrayContaining([`${folder}/alerts.yml`, `${folder}/alerts.test.yml`, `${folder}/dashboard.json`]),
    );
  });

  it('have every page and heading that README, docs/, JSDoc and messages name', () => {
    const { followed, broken } = followPackedLinks(read([...packed, ...sources]));
    expect(broken).toEqual([]);
    expect(followed).toBeGreaterThan(100);
  });
});

describe('followPackedLinks', () => {
  const page = '# Waiting\n\n## The order of `waiters`\n\n```sh\n# no heading\n[no](link.md)\n```\n';
  const check = (path: string, text: string) =>
    followPackedLinks(new Map([['docs/guide/waiting.md', page]]).set(path, text)).broken;

  it.each([
    ['README.md', '[waiting](docs/guide/waiting.md#the-order-of-waiters) [other](https://redis.io/nowhere)'],
    ['docs/reference/errors.md', '[waiting](../guide/waiting.md#waiting), [here](#errors)\n\n# Errors'],
    ['dist/esm/a.js', 'throw new Error("See docs/guide/waiting.md#waiting.")'],
    ['dist/esm/a.d.ts', '/** @see https://redis.io/docs/latest/commands.md */'],
  ])('follows those of %s: %s', (path, text) => expect(check(path, text)).toEqual([]));

  it.each([
    ['README.md', '[a](docs/guide/other.md)', 'docs/guide/other.md'],
    ['README.md', '[a](docs/guide/waiting.md#no-heading)', 'docs/guide/waiting.md#no-heading'],
    ['README.md', '<img src="docs/demo.svg">', 'docs/demo.svg'],
    ['docs/guide/waiting.md', '[a](../../lib/index.ts)', 'lib/index.ts'],
    ['CONTRIBUTING.md', '[a](api.md)', 'api.md'],
    ['dist/cjs/a.js', 'throw new Error("See docs/operations/acl.md.")', 'docs/operations/acl.md'],
    ['dist/cjs/a.d.ts', '/** @see docs/guide/waiting.md#nowhere */', 'docs/guide/waiting.md#nowhere'],
  ])('finds that %s leads nowhere: %s', (path, text, target) => {
    expect(check(path, text)).toEqual([`${path}: ${target}`]);
  });
});

it('builds when it is packed, and not where it is installed', () => {
  const { scripts } = manifest;
  expect(scripts['prepack']).toBe('npm run build');
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name);
});
