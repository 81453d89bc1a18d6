import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const SUPPORT = new URL('../../support/process/', import.meta.url).href;
/** Asks in a process of its own, because each remembers what it has asked for. */
const ASK = `
  const { programOf } = await import('${SUPPORT}program.ts');
  const [main, name, file, text] = process.argv.slice(1);
  process.stdout.write(programOf(new URL(main), file && { name, file: new URL(file), text }));`;

describe('a program that a test starts as a process', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'program-'));
    write('main.ts', "import { said } from './said.js';\nconst text: string = said;\nconsole.log(text);\n");
    write('said.ts', "import { word } from './word.js';\nexport const said: string = `${word}!`;\n");
    write('word.js', "export const word = 'hello';\n");
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  const urlOf = (name: string): string => pathToFileURL(join(folder, name)).href;
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  const node = (...args: string[]) => {
    const env = { ...process.env, NODE_OPTIONS: '' };
    return spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  };
  const make = (...replaced: string[]) =>
    node(
      '--import',
      `${SUPPORT}typescript-loader.mjs`,
      '--input-type=module',
      '-e',
      ASK,
      urlOf('main.ts'),
      ...replaced,
    );
  const run = (program: string): string => node(program).stdout.trim();

  it('is made once of what it imports, and again when that has changed', () => {
    const { stdout: program } = make();
    expect(run(program)).toBe('hello!');
    expect(make().stdout).toBe(program);
    write('said.ts', "export const said: string = 'good morning';\n");
    expect(run(make().stdout)).toBe('good morning');
  });

  it('has another text in place of a file of the library where a test wants that', () => {
    expect(run(make('rude', urlOf('word.js'), "export const word = 'bye';").stdout)).toBe('bye!');
    expect(run(make().stdout)).toBe('hello!');
  });

  it('is refused where it does not import what is to be replaced', () => {
    const { status, stderr } = make('wrong', urlOf('other.js'), '');
    expect(status).not.toBe(0);
    expect(stderr).toContain('other.js');
  });

  it('is refused where it cannot be compiled', () => {
    write('said.ts', 'export const said = ;\n');
    const { status, stderr } = make();
    expect(status).not.toBe(0);
    expect(stderr).toContain('said.ts');
  });
});
