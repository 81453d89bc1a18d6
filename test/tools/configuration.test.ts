import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { root } from '../../scripts/setup.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const files = repositoryFiles();
const among = (pattern: RegExp) => files.filter((path) => pattern.test(path));

interface Step {
  uses?: string;
  run?: string;
  env?: Record<string, string>;
  with?: Record<string, unknown>;
}
interface Job {
  'timeout-minutes'?: number;
  permissions?: Record<string, string>;
  steps: Step[];
  strategy?: { matrix: { include: Record<string, unknown>[] } };
}
interface Workflow {
  on: Record<string, unknown>;
  permissions?: Record<string, string>;
  jobs: Record<string, Job>;
}
const workflowFiles = among(/^\.github\/workflows\//);
const workflow = (path: string) => parseDocument(read(path)).toJS() as Workflow;
const stepsOf = (path: string) => Object.values(workflow(path).jobs).flatMap(({ steps }) => steps);
const manifest = JSON.parse(read('package.json')) as {
  scripts: Record<string, string>;
  engines: { node: string };
  peerDependencies: Record<string, string>;
};

it.each(among(/\.ya?ml$/))('%s is YAML, without a key twice', (path) => {
  const { errors, warnings } = parseDocument(read(path));
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
});

it.each(among(/(^|\/)(package(-lock)?|renovate)\.json$/))('%s is JSON', (path) => {
  expect(JSON.parse(read(path))).toEqual(expect.any(Object));
});

/** Permissions of jobs beyond reading, by workflow. */
const RIGHTS: Record<string, Record<string, Record<string, string>>> = {
  'release.yml': { publish: { 'id-token': 'write' }, announce: { contents: 'write' } },
};

describe.each(workflowFiles)('%s', (path) => {
  it('may only read, but for the jobs that say more', () => {
    const { permissions, jobs } = workflow(path);
    expect(permissions).toEqual({ contents: 'read' });
    const rights = Object.entries(jobs).map(([name, job]) => [name, job.permissions] as const);
    expect(Object.fromEntries(rights.filter(([, given]) => given !== undefined))).toEqual(
      RIGHTS[path.split('/').at(-1)!] ?? {},
    );
  });

  it('runs no code of a pull request with the rights of the repository', () => {
    expect(Object.keys(workflow(path).on)).not.toContain('pull_request_target');
  });

  it('ends each job after a time of its own', () => {
    for (const job of Object.values(workflow(path).jobs)) expect(job['timeout-minutes']).toBeLessThanOrEqual(180);
  });

  it('takes actions by their commit, with the version beside it', () => {
    const used = [...read(path).matchAll(/^\s*- uses: (.*)$/gm)].map(([, action]) => action);
    expect(used).toHaveLength(stepsOf(path).filter(({ uses }) => uses !== undefined).length);
    for (const action of used) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('leaves no token in a checkout', () => {
    const checkouts = stepsOf(path).filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    for (const checkout of checkouts) expect(checkout.with).toMatchObject({ 'persist-credentials': false });
  });

  it('puts no expression into a shell, which would run what it holds', () => {
    for (const { run } of stepsOf(path)) expect(run ?? '').not.toContain('${{');
  });
});

it.each([...workflowFiles, ...among(/^\.ci\//)])('%s runs commands that exist', (path) => {
  const commands = read(path).replaceAll(/^\s*#.*$/gm, '');
  for (const [, script] of commands.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)) {
    expect(Object.keys(manifest.scripts)).toContain(script);
  }
  const programs = [...commands.matchAll(/(?<=\bnode |source |run: )(?:\.ci|tools|scripts|test)\/\S+/g)];
  for (const [program] of programs) expect(files).toContain(program);
  expect(files).toEqual(expect.arrayContaining(Object.values(manifest.scripts).filter((it) => it.startsWith('.ci/'))));
});

describe('what each workflow runs', () => {
  const runs = (name: string, job: string) =>
    workflow(`.github/workflows/${name}.yml`).jobs[job]!.steps.flatMap(({ run }) => run ?? []);

  it('is the fixed list for each change, and every test at night and before a release', () => {
    expect(runs('ci', 'change')).toEqual(['.ci/run']);
    expect(runs('nightly', 'everything')).toEqual(['npm run test:all']);
    expect(runs('nightly', 'long')).toEqual(['npm run test:long']);
    expect(runs('release', 'check')).toContain('npm run test:all');
  });
});

describe('the versions of .github/workflows/ci.yml', () => {
  const { jobs } = workflow('.github/workflows/ci.yml');
  const rows = jobs['versions']!.strategy!.matrix.include;
  const inRows = (name: string) => [...new Set(rows.map((row) => Number(row[name])))].toSorted((a, b) => a - b);
  const majors = (range: string) => [...range.matchAll(/\^(\d+)\./g)].map(([, major]) => Number(major));

  it.each([
    ['nest', '@nestjs/core'],
    ['schedule', '@nestjs/schedule'],
    ['ioredis', 'ioredis'],
  ])('%s: each major that is allowed as a peer', (name, peer) => {
    // Nest 10 lacks parts that the tests use. A consumer of the packed package is on it.
    const others = name === 'nest' && existsSync('test/package/consumers/nest10-cjs') ? [10] : [];
    expect([...others, ...inRows(name)]).toEqual(majors(manifest.peerDependencies[peer]!));
  });

  it('include the oldest Node, in full where a change is checked', () => {
    const oldest = manifest.engines.node.replace('>=', '');
    expect(inRows('node')[0]).toBe(Number(oldest.split('.')[0]));
    const [setup] = jobs['change']!.steps.filter(({ uses }) => uses?.startsWith('actions/setup-node@'));
    expect(String(setup!.with!['node-version'])).toBe(oldest);
  });
});
