import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Example {
  says: string;
  file: string;
  code: string;
  rule: string | null;
}

const arrows = 'eslint(no-restricted-imports)';

/** Each example is one file of a project that has our lint configuration. */
const examples: Example[] = [
  {
    says: 'the sample app imports the package by its name',
    file: 'sample-app/src/a.ts',
    code: `import 'nestjs-redis-lock';`,
    rule: null,
  },
  {
    says: 'the sample app must not import lib/',
    file: 'sample-app/src/b.ts',
    code: `import '../../lib/core/a.js';`,
    rule: arrows,
  },
  {
    says: 'a test of core must not start a server',
    file: 'test/core/lease/a.test.ts',
    code: `import '../../support/redis/redis-server.js';`,
    rule: arrows,
  },
  {
    says: 'a test of a room of redis must not start a server',
    file: 'test/redis/script/a.test.ts',
    code: `import '../../support/network/tcp-proxy.js';`,
    rule: arrows,
  },
  {
    says: 'a test on the wire may start a server',
    file: 'test/redis/wire/a.test.ts',
    code: `import '../../support/redis/redis-server.js';`,
    rule: null,
  },
  {
    says: 'scripts must not need an installed package',
    file: 'scripts/a.mjs',
    code: `import 'ioredis';`,
    rule: arrows,
  },
  {
    says: 'import cycles',
    file: 'lib/core/cycle-a.ts',
    code: `import { b } from './cycle-b.js'; export const a = () => b;`,
    rule: 'import(no-cycle)',
  },
  {
    says: 'import cycles, the other half',
    file: 'lib/core/cycle-b.ts',
    code: `import { a } from './cycle-a.js'; export const b = () => a;`,
    rule: 'import(no-cycle)',
  },
  {
    says: 'a promise nobody awaits',
    file: 'lib/core/h.ts',
    code: `export function f(): void { Promise.resolve(); }`,
    rule: 'typescript(no-floating-promises)',
  },
  {
    says: 'a promise as a condition',
    file: 'lib/core/i.ts',
    code: `export const f = (a: Promise<void>) => { if (a) return 1; return 2; };`,
    rule: 'typescript(no-misused-promises)',
  },
  {
    says: 'await of what is no promise',
    file: 'lib/core/j.ts',
    code: `export const f = async (a: number) => { await a; };`,
    rule: 'typescript(await-thenable)',
  },
  {
    says: 'any',
    file: 'lib/core/k.ts',
    code: `export const f = (a: any): unknown => a;`,
    rule: 'typescript(no-explicit-any)',
  },
];

describe('the lint rules', () => {
  let folder: string;
  let found: Map<string, string[]>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lint-rules-'));
    await cp(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
    const compilerOptions = { module: 'nodenext', target: 'es2023', strict: true, noEmit: true };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    for (const { file, code } of examples) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), `${code}\n`);
    }
    found = await lint(folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(examples)('$says', ({ file, rule }) => {
    expect(found.get(file) ?? []).toEqual(rule === null ? [] : [rule]);
  });
});

/** The rules that each file breaks. */
function lint(folder: string): Promise<Map<string, string[]>> {
  const program = join(root, 'node_modules/oxlint/bin/oxlint');
  // tsgolint, the type-aware half, is found on PATH or next to the linted project; this project is elsewhere.
  const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}` };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, '--type-aware', '--format', 'json'], { cwd: folder, env }, (error, output) => {
      if (!output.startsWith('{')) return reject(new Error(output, { cause: error }));
      const { diagnostics } = JSON.parse(output) as { diagnostics: { filename: string; code: string }[] };
      const rules = new Map<string, string[]>();
      for (const { filename, code } of diagnostics) rules.set(filename, [...(rules.get(filename) ?? []), code]);
      resolve(rules);
    });
  });
}
