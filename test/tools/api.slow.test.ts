import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { reportApi } from '../../tools/api/report.mjs';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** The report of a package with these files and the entry points `index.ts` and `extra.ts`. */
function reportOf(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'api-report-'));
  folders.push(folder);
  const compilerOptions = { target: 'es2022', lib: ['es5'], module: 'nodenext', strict: true, types: [] };
  const all = { 'extra.ts': 'export {};', ...files, 'tsconfig.json': JSON.stringify({ compilerOptions }) };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return reportApi({
    entries: { '.': join(folder, 'index.ts'), './extra': join(folder, 'extra.ts') },
    tsconfig: join(folder, 'tsconfig.json'),
  });
}

describe('reportApi', () => {
  it('lists each name with its declaration, by entry point and kind', () => {
    const report = reportOf({
      'index.ts': `export { Door } from './door.js'; export type { Key } from './door.js';`,
      'extra.ts': `export { knock } from './door.js'; export type { Key } from './door.js';`,
      'door.ts': `
        export type Key = 'brass' | 'iron';
        /** Opens. */
        export class Door { open(key: Key): boolean { return key === 'iron'; } }
        export function knock(times = 1): void {}
      `,
    });
    expect(report).toBe(`## \`.\`

Values: 1. Types: 1.

### Classes

\`\`\`ts
class Door {
    open(key: Key): boolean;
}
\`\`\`

### Types

\`\`\`ts
type Key = 'brass' | 'iron';
\`\`\`

## \`./extra\`

Values: 1. Types: 1.

Also here: \`Key\` of \`.\`.

### Functions

\`\`\`ts
function knock(times?: number): void;
\`\`\`
`);
  });

  it('does not depend on the file that declares a name', () => {
    const lock = `import { makeKey } from './key.js'; export class Lock { key = makeKey(); }`;
    const key = `export interface Key { teeth: number } export const makeKey = (): Key => ({ teeth: 3 });`;
    const flat = reportOf({ 'index.ts': `export * from './lock.js';`, 'lock.ts': lock, 'key.ts': key });
    const nested = reportOf({
      'index.ts': `export * from './rooms/lock.js';`,
      'rooms/lock.ts': lock,
      'rooms/key.ts': key,
    });
    expect(flat).toContain('key: Key;');
    expect(nested).toBe(flat);
  });

  it('changes with a signature, and not with what is private', () => {
    const classOf = (members: string) => reportOf({ 'index.ts': `export class Lock { ${members} }` });
    const before = classOf('take(waitMs: number): void {}');
    expect(classOf('take(waitMs?: number): void {}')).not.toBe(before);
    expect(classOf('take(waitMs: number): void {} drop(): void {}')).not.toBe(before);
    expect(classOf('/** Waits. */ take(waitMs: number): void {} private held = 1; #count = 2;')).toBe(before);
  });

  it('shows types that signatures name without exporting them, and what those name in turn', () => {
    const report = reportOf({
      'index.ts': `export { type Options, fence } from './options.js';`,
      'options.ts': `
        const COLOURS = ['red', 'blue'] as const;
        interface Base { colour?: (typeof COLOURS)[number] }
        interface Unused { never: true }
        export interface Options extends Base { waitMs?: number }
        function guard(token: number): void {}
        export const fence = { guard };
      `,
    });
    const hidden = report.split('## Named above, not exported')[1];
    expect(hidden).toContain('interface Base');
    expect(hidden).toContain('const COLOURS: readonly [');
    expect(hidden).toContain('function guard(token: number): void');
    expect(hidden).not.toContain('Unused');
    expect(hidden).not.toContain('Options');
  });

  it('leaves out constructors that only the package itself can call', () => {
    const report = reportOf({
      'index.ts': `
        class Store {}
        export class Client { constructor(store: Store) { void store; } }
        export class Point { constructor(x: number) { void x; } }
      `,
    });
    expect(report).toContain('constructor(x: number)');
    expect(report).not.toContain('Store');
  });

  it('says which classes are exported as a type only', () => {
    const report = reportOf({
      'index.ts': `export type { A } from './classes.js'; export { B as C } from './classes.js';`,
      'classes.ts': `export class A {} export class B {}`,
    });
    expect(report).toContain('// as a type only\nclass A {');
    expect(report).toContain('// exported as C\nclass B {');
    expect(report).toContain('Values: 1. Types: 1.');
  });
});
