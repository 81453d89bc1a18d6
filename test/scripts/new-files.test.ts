import { newFiles } from '../../scripts/lint/new-files.mjs';

const TEXTS: Record<string, string> = {
  'lib/a.ts': `export const a = 1;`,
  'lib/b.ts': `import { a } from './a.js';\nexport const b = a;`,
  'lib/c.ts': `import { b } from './b.js';`,
  'test/late.ts': `const { a } = await import('../lib/a.js');`,
  'tools/t.mjs': `export { s } from '../scripts/s.mjs';`,
  'scripts/s.mjs': `export const s = 'from ./a.js';`,
};
const now = { rules: 'r1', files: Object.fromEntries(Object.keys(TEXTS).map((file) => [file, `hash of ${file}`])) };
const passedBut = (...changed: string[]) => ({
  ...now,
  files: Object.fromEntries(Object.entries(now.files).filter(([file]) => !changed.includes(file))),
});
const read = (file: string) => TEXTS[file]!;

describe('the rules that need types look', () => {
  it('at everything where nothing is kept of a run before, and where the rules have changed', () => {
    expect(newFiles(undefined, now, read)).toEqual(Object.keys(TEXTS));
    expect(newFiles({ ...now, rules: 'r0' }, now, read)).toEqual(Object.keys(TEXTS));
  });

  it('at nothing where nothing has changed', () => {
    expect(newFiles(now, now, read)).toEqual([]);
  });

  it('at a file that is new or changed, and at those that import it', () => {
    expect(newFiles(passedBut('lib/a.ts'), now, read)).toEqual(['lib/a.ts', 'lib/b.ts', 'test/late.ts']);
    const changed = { ...now, files: { ...now.files, 'scripts/s.mjs': 'another' } };
    expect(newFiles(changed, now, read)).toEqual(['tools/t.mjs', 'scripts/s.mjs']);
  });

  it('at what imported a file that is gone only if it has changed: the compiler says the rest', () => {
    const before = { ...now, files: { ...now.files, 'lib/gone.ts': 'hash' } };
    expect(newFiles(before, now, read)).toEqual([]);
  });
});
