import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import config, { ROOMS } from '../../.dependency-cruiser.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rooms = Object.keys(ROOMS);
const PACKAGES = [
  'ioredis',
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/schedule',
  '@nestjs/terminus',
  '@opentelemetry/api',
  'prom-client',
  'reflect-metadata',
  'rxjs',
];

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

/** A library with the rooms of lib/, in which each room imports every room and every package: once a value, once only a type. */
describe('the arrows between the rooms of lib/', () => {
  let folder: string;
  let violations: readonly Violation[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'arrows-'));
    await cp(join(root, '.dependency-cruiser.mjs'), join(folder, '.dependency-cruiser.mjs'));
    await writeFile(join(folder, 'tsconfig.json'), '{ "compilerOptions": { "module": "nodenext" } }');
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir');
    for (const room of rooms) await mkdir(join(folder, 'lib', room), { recursive: true });
    for (const room of rooms) {
      const place = join(folder, 'lib', room);
      const target = (other: string): string => `${relative(place, join(folder, 'lib', other)) || '.'}/target.js`;
      await writeFile(join(place, 'target.ts'), 'export interface A {}\nexport const a = 1;\n');
      const values = rooms.map((other, at) => `export { a as a${at} } from './${target(other)}';`);
      const types = rooms.map((other, at) => `export type { A as A${at} } from './${target(other)}';`);
      await writeFile(join(place, 'values.ts'), `${values.join('\n')}\n`);
      await writeFile(join(place, 'types.ts'), `${types.join('\n')}\n`);
      await writeFile(join(place, 'packages.ts'), [...PACKAGES, 'node:fs'].map((it) => `import '${it}';\n`).join(''));
    }
    await mkdir(join(folder, 'lib/kernel/lost'));
    await writeFile(join(folder, 'lib/kernel/lost/lost.ts'), `import '../api/target.js';\n`);
    await writeFile(join(folder, 'lib/index.ts'), `export { a } from './core/api/target.js';\n`);
    await writeFile(join(folder, 'lib/memory/entry.ts'), `import '../index.js';\n`);
    await writeFile(
      join(folder, 'lib/memory/one.ts'),
      `import type { B } from './two.js';\nexport interface A { b: B }\n`,
    );
    await writeFile(
      join(folder, 'lib/memory/two.ts'),
      `import type { A } from './one.js';\nexport interface B { a: A }\n`,
    );
    violations = await cruise(folder);
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const refusedFrom = (file: string): string[] =>
    violations
      .filter(({ from, rule }) => from === file && rule.name.startsWith('arrows'))
      .map(({ to }) => to.replace(/^lib\/(.*)\/target\.ts$/, '$1'))
      .sort();

  describe.each(rooms)('lib/%s', (room) => {
    const refusedRooms = rooms.filter((other) => other !== room && !ROOMS[room]!.rooms.includes(other)).sort();

    it('may import the rooms in its line, and no other', () => {
      expect(refusedFrom(`lib/${room}/values.ts`)).toEqual(refusedRooms);
    });

    it('may not import a type either', () => {
      expect(refusedFrom(`lib/${room}/types.ts`)).toEqual(refusedRooms);
    });

    it('may import the packages in its line, and node:*', () => {
      const refused = violations.filter(({ from }) => from === `lib/${room}/packages.ts`).map(({ to }) => to);
      const allowed = ROOMS[room]!.packages ?? [];
      const isRefused = (name: string): boolean => refused.some((to) => to === name || to.includes(`${name}/`));
      expect(PACKAGES.filter(isRefused)).toEqual(PACKAGES.filter((name) => !allowed.includes(name)));
      expect(refused).toHaveLength(PACKAGES.length - allowed.length);
    });
  });

  it('a room without a line is refused', () => {
    expect(violations).toContainEqual(
      expect.objectContaining({ from: 'lib/kernel/lost/lost.ts', rule: named('rooms') }),
    );
  });

  it('a room does not import an entry point', () => {
    expect(violations).toContainEqual(
      expect.objectContaining({ from: 'lib/memory/entry.ts', to: 'lib/index.ts', rule: named('entry-points') }),
    );
  });

  it('a circle of types is a circle', () => {
    expect(violations).toContainEqual(
      expect.objectContaining({ from: 'lib/memory/one.ts', to: 'lib/memory/two.ts', rule: named('no-circles') }),
    );
  });

  it('the table itself has no circle: a room is reached by none that it reaches', () => {
    const reached = (room: string, seen = new Set<string>()): Set<string> => {
      for (const next of ROOMS[room]!.rooms) if (!seen.has(next)) reached(next, seen.add(next));
      return seen;
    };
    for (const room of rooms) expect([...reached(room)]).not.toContain(room);
    expect(config.forbidden?.every(({ severity }) => severity === 'error')).toBe(true);
  });
});

function named(name: string): unknown {
  return expect.objectContaining({ name });
}

async function cruise(folder: string): Promise<readonly Violation[]> {
  const program = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const output = await new Promise<string>((resolve, reject) => {
    const args = [program, '--output-type', 'json', 'lib'];
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 1e8 }, (error, stdout, stderr) => {
      if (stdout.startsWith('{')) resolve(stdout);
      else reject(new Error(stderr, { cause: error }));
    });
  });
  return (JSON.parse(output) as { summary: { violations: Violation[] } }).summary.violations;
}
