import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { publishedPage, repositoryOf } from '../../tools/package/pages.mjs';
import { missingCode, publishedPaths } from '../../tools/package/stage.mjs';
import { followPackedLinks } from '../package/links.mjs';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  private: boolean;
  scripts: Record<string, string>;
};
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`);

describe('the packed files', () => {
  const published = publishedPaths();
  /** Without dist/, which may be stale or missing here. */
  const packed = [...published].filter((path) => !path.startsWith('dist/'));
  const pages = packed.filter((path) => path.endsWith('.md'));
  const sources = filesOf('lib').filter((path) => path.endsWith('.ts'));
  const links = { published, repository: 'shop/locks', version: '1.2.3' };

  it('have the pages for users', () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        'README.md',
        'AGENTS.md',
        'CHANGELOG.md',
        'LICENSE',
        'SECURITY.md',
        'docs/guide/getting-started.md',
      ]),
    );
  });

  it('are not staged without the code, which npm run build makes', () => {
    expect(missingCode(new Set(packed))).toEqual(expect.arrayContaining(['dist/esm/index.js', 'dist/cjs/index.js']));
    const code = ['index', 'schedule'].flatMap((name) => [`dist/esm/${name}.js`, `dist/cjs/${name}.js`]);
    expect(missingCode(new Set([...packed, ...code]))).not.toContain('dist/esm/schedule.js');
  });

  it('have the rules and the dashboard for Prometheus, but no program and no picture', () => {
    expect(packed.filter((path) => !pages.includes(path)).toSorted()).toEqual([
      'LICENSE',
      'docs/operations/prometheus/alerts.test.yml',
      'docs/operations/prometheus/alerts.yml',
      'docs/operations/prometheus/dashboard.json',
      'package.json',
    ]);
  });

  it('have no mark of tests or tools, as pages', () => {
    const marked = pages.filter((page) => publishedPage(read(page), { page, ...links }).includes('<!--'));
    expect(marked).toEqual([]);
  });

  it('have every page and heading that JSDoc, messages and packed pages name, but for what is in the repository', () => {
    const texts = pages.map((page) => [page, publishedPage(read(page), { page, ...links })] as const);
    const code = sources.map((path) => [path, read(path)] as const);
    const data = packed.filter((path) => path.startsWith('docs/operations/prometheus/'));
    const rest = data.map((path) => [path, read(path)] as const);
    const { followed, broken } = followPackedLinks(new Map([...texts, ...code, ...rest]));
    // These are for contributors. test/package reads the published code, which has no such comments.
    expect(broken.filter((link) => !link.includes(': docs/internals/'))).toEqual([]);
    expect(followed).toBeGreaterThan(100);
  });

  it('name no page, heading or picture that the repository does not have', () => {
    const others = [
      ...filesOf('docs'),
      'CONTRIBUTING.md',
      'api.md',
      'tools/README.md',
      'tools/api/shapes.md',
      'tools/model/README.md',
    ].filter((path) => /\.\w+$/.test(path));
    const project = new Map([...packed, ...others].map((path) => [path, read(path)]));
    expect(followPackedLinks(project).broken).toEqual([]);
  });

  it('lead from README to the repository alone: npm shows it without the others', () => {
    const readme = publishedPage(read('README.md'), { page: 'README.md', ...links });
    expect(followPackedLinks(new Map([['README.md', readme]]))).toEqual({ followed: 0, broken: [] });
    expect(readme).toContain('](https://raw.githubusercontent.com/shop/locks/v1.2.3/docs/without-locks.svg)');
    expect(readme).toContain('](https://github.com/shop/locks/blob/v1.2.3/docs/guide/getting-started.md)');
  });
});

it.each([
  ['git+https://github.com/shop/locks.git', 'shop/locks'],
  ['https://gitlab.com/shop/locks', undefined],
  [undefined, undefined],
])('the repository %s is %s', (url, repository) => {
  expect(repositoryOf({ ...(url !== undefined && { repository: { url } }) })).toBe(repository);
});

it('the root cannot be published, and an installation runs nothing', () => {
  expect(manifest.private).toBe(true);
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) {
    expect(manifest.scripts).not.toHaveProperty(name);
  }
});
