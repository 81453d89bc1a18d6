import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LOCK_METRICS, type LockAttribute, LockMetric, prometheusNameOf } from '../../lib/extras/telemetry/names.js';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { root } from '../../scripts/setup.mjs';
import { publishedPage, repositoryOf } from '../../tools/package/pages.mjs';
import { readRelease } from '../../tools/release/read-release.mjs';
import { missingCode, publishedPaths } from '../../tools/package/stage.mjs';
import { followPackedLinks } from '../package/links.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';

describe('the entry points', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, object | string>;
  };

  it('are the files of lib/ that lie in no room', () => {
    const files = readdirSync(join(root, 'lib')).filter((name) => name.endsWith('.ts'));
    expect(ENTRY_POINTS.map(({ source }) => source).toSorted()).toEqual(files.map((name) => `lib/${name}`).toSorted());
  });

  it.each(ENTRY_POINTS)('$specifier leads to a file of each format, which has its types beside it', (entry) => {
    expect(manifest.exports[entry.subpath]).toEqual({
      import: `./dist/esm/${entry.name}.js`,
      require: `./dist/cjs/${entry.name}.js`,
    });
  });

  it('are all that can be imported, but for package.json', () => {
    const others = Object.keys(manifest.exports).filter(
      (path) => !ENTRY_POINTS.some(({ subpath }) => subpath === path),
    );
    expect(others).toEqual(['./package.json']);
  });
});

describe('the section of a release in the changelog', () => {
  const readNotes = (end: string) => {
    const version = '1.2.3';
    return readRelease({
      tag: `v${version}`,
      manifest: { version, repository: { url: 'git+https://github.com/owner/name.git' } },
      lock: { version, packages: { '': { version } } },
      changelog: `# Changelog\n\n## [${version}] - 2026-01-31\n\n- Locks.\n${end}`,
    }).notes;
  };

  it('names a run of chaos that users can repeat', () => {
    const run = 'Checked with `npm run chaos -- --seed 42`.';
    expect(readNotes(`\n${run}\n`)).toBe(`- Locks.\n\n${run}`);
    expect(() => readNotes('')).toThrow('names no run');
    expect(() => readNotes('\nChecked with `npm run chaos -- --seed <seed>`.\n')).toThrow('names no run');
  });
});

describe('lock files of packages', () => {
  type Dependencies = Record<string, string>;
  interface Manifest {
    dependencies?: Dependencies;
    devDependencies?: Dependencies;
  }
  interface Lock {
    lockfileVersion: number;
    packages: Record<string, Manifest & { version?: string; resolved?: string; integrity?: string; link?: boolean }>;
  }

  const REGISTRY = 'https://registry.npmjs.org/';
  const read = <T>(path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as T;

  /** Each folder with dependencies of its own: the project, and the stacks that `npm ci` does not install. */
  const stacks = repositoryFiles('*package.json')
    .map((path) => [dirname(path), read<Manifest>(path)] as const)
    .filter(([, { dependencies, devDependencies }]) => dependencies !== undefined || devDependencies !== undefined);

  it('the test finds the project and the stacks', () => {
    expect(stacks.map(([folder]) => folder)).toEqual(
      expect.arrayContaining([
        '.',
        'tools/bench',
        'tools/docs',
        'test/stacks/databases',
        'test/package/consumers/nest11-cjs-jest',
      ]),
    );
  });

  describe.each(stacks)('the lock file of %s', (folder, { dependencies, devDependencies }) => {
    const lock = () => read<Lock>(join(folder, 'package-lock.json'));

    it('is of this package.json', () => {
      const locked = lock().packages['']!;
      expect({ ...locked.dependencies }).toEqual({ ...dependencies });
      expect({ ...locked.devDependencies }).toEqual({ ...devDependencies });
    });

    it('has each package with its hash, from the public registry', () => {
      const { '': _project, ...packages } = lock().packages;
      const wrong = Object.entries(packages).filter(
        ([, { version, integrity = '', resolved = REGISTRY }]) =>
          version === undefined || !integrity.startsWith('sha512-') || !resolved.startsWith(REGISTRY),
      );
      expect(wrong).toEqual([]);
    });
  });
});

describe('the package', () => {
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
});

describe('files for Prometheus', () => {
  const SHIPPED = ['alerts.yml', 'alerts.test.yml', 'dashboard.json'];

  /** Every series that Prometheus can have, with the labels that it may have. */
  const KNOWN = new Map<string, Set<string>>();
  for (const metric of Object.values(LockMetric)) {
    const { kind, attributes } = LOCK_METRICS[metric];
    const labels = attributes.map(labelOf);
    const name = prometheusNameOf(metric);
    if (kind !== 'histogram') KNOWN.set(name, new Set(labels));
    else for (const end of ['bucket', 'sum', 'count']) KNOWN.set(`${name}_${end}`, new Set([...labels, 'le']));
  }
  const OURS = new Set([...KNOWN.values()].flatMap((labels) => [...labels]));
  /** The labels that Prometheus adds to each series. */
  const OF_PROMETHEUS = ['job', 'instance'];

  function labelOf(attribute: LockAttribute): string {
    return attribute.replaceAll('.', '_');
  }

  function read(file: string): string {
    return readFileSync(join(root, 'docs/operations/prometheus', file), 'utf8').replaceAll('\\"', '"');
  }

  describe.each(SHIPPED)('docs/operations/prometheus/%s', (file) => {
    const text = read(file);
    const series = [...text.matchAll(/\b(nestjs_redis_lock_\w+)(?:\{([^}]*)\})?/g)];

    it('names only metrics that there are', () => {
      expect(series.length).toBeGreaterThan(10);
      expect(series.map(([, name]) => name!).filter((name) => !KNOWN.has(name))).toEqual([]);
    });

    it('selects by labels that the metric has', () => {
      const wrong = series.flatMap(([, name, selectors = '']) => {
        const labels = [...selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
        const known = new Set([...KNOWN.get(name!)!, ...OF_PROMETHEUS]);
        return labels.filter((label) => !known.has(label)).map((label) => `${name}: ${label}`);
      });
      expect(wrong).toEqual([]);
    });

    it('groups by labels that there are', () => {
      const labels = [...text.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, list]) => list!.split(/, */));
      expect(labels.filter((label) => !OURS.has(label) && !OF_PROMETHEUS.includes(label))).toEqual([]);
    });
  });

  it('the alerts and the dashboard together show every metric', () => {
    const text = SHIPPED.map(read).join('\n');
    const shown = Object.values(LockMetric).filter((metric) => new RegExp(`\\b${prometheusNameOf(metric)}`).test(text));
    expect(shown).toEqual(Object.values(LockMetric));
  });

  it('every alert has a test next to it', () => {
    const alerts = [...read('alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    const tried = new Set([...read('alerts.test.yml').matchAll(/alertname: (\w+)/g)].map(([, name]) => name));
    expect(alerts.length).toBeGreaterThan(10);
    expect(alerts.filter((name) => !tried.has(name))).toEqual([]);
  });
});

const DECLARED =
  /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)(?=[\s<{]*[={<]| extends| implements)/gm;

it('no two files of lib/ declare a type by the same name, be it exported or private', () => {
  const places = new Map<string, string[]>();
  for (const file of repositoryFiles('lib/*.ts').filter((name) => !name.endsWith('.generated.ts'))) {
    for (const [, name] of readFileSync(join(root, file), 'utf8').matchAll(DECLARED)) {
      places.set(name!, [...(places.get(name!) ?? []), file]);
    }
  }
  expect(places.size).toBeGreaterThan(800);
  expect([...places].filter(([, files]) => files.length > 1)).toEqual([]);
});
