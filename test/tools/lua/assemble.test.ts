import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { assembleAll, linesOf, textOf } from '../../../tools/lua/assemble.mjs';
import { generate } from '../../../tools/lua/generate.mjs';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lua-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, `${name}.lua`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

function assembled(script: string): string {
  return textOf(linesOf(assembleAll(folder).get(script)!));
}

describe('assembling a script', () => {
  it('leaves out the headers, and keeps every other line as it is', () => {
    write({ a: '-- Header.\n-- KEYS  1  lock\n\n-- Why.\nlocal x = 1 -- here\n\nreturn x\n' });
    expect(assembled('a')).toBe('\n-- Why.\nlocal x = 1 -- here\n\nreturn x\n');
  });

  it('puts an include where it is mentioned first, after those that it includes itself', () => {
    write({
      a: '-- A.\n\nlocal a = 1\n\n-- @include two\n-- @include one\n\nreturn a\n',
      'include/one': '-- One.\n\nlocal one = 1\n',
      'include/two': '-- Two.\n\n-- @include one\n\nlocal two = one + 1\n',
    });
    expect(assembled('a').split('\n').filter(Boolean)).toEqual([
      'local a = 1',
      'local one = 1',
      'local two = one + 1',
      'return a',
    ]);
  });

  it('puts an inline fragment wherever it is mentioned, with its words replaced and as far indented', () => {
    write({
      a: '-- A.\n\nif x then\n  -- @inline get key=KEYS[1]\nend\n-- @inline get\n',
      'include/get': "-- Get.\n\nlocal keys = 0\nredis.call('GET', key)\n",
    });
    expect(assembled('a')).toBe(
      "\nif x then\n  local keys = 0\n  redis.call('GET', KEYS[1])\nend\nlocal keys = 0\nredis.call('GET', key)\n",
    );
  });

  it('knows of each line where it was written', () => {
    write({ a: '-- A.\n\n-- @include one\n\nreturn one\n', 'include/one': '-- One.\n-- Still.\n\nlocal one = 1\n' });
    const places = linesOf(assembleAll(folder).get('a')!).map(({ file, number, text }) => `${file}:${number} ${text}`);
    expect(places).toContain('include/one.lua:4 local one = 1');
    expect(places).toContain('a.lua:5 return one');
  });

  it.each<[string, Record<string, string>, string]>([
    [
      'an include that is not there',
      { a: '-- A.\n\n-- @include nothing\n' },
      'a.lua:3: there is no include/nothing.lua',
    ],
    [
      'a circle',
      {
        a: '-- A.\n\n-- @include one\n',
        'include/one': '-- One.\n-- @include two\n',
        'include/two': '-- Two.\n\n\n-- @include one\n',
      },
      'include/two.lua:4: a circle: a.lua includes include/one.lua includes include/two.lua includes include/one.lua',
    ],
    ['another word', { a: '-- A.\n\n-- @import one\n' }, 'a.lua:3: not understood: -- @import one'],
    [
      'an include inside of a block',
      { a: '-- A.\n\ndo\n  -- @include one\nend\n', 'include/one': '-- One.\n\nlocal one = 1\n' },
      'a.lua:4: not understood',
    ],
    [
      'a replacement of a word that is not there',
      { a: '-- A.\n\n-- @inline one key=KEYS[1]\n', 'include/one': '-- One.\n\nlocal one = 1\n' },
      'a.lua:3: key=KEYS[1] replaces nothing',
    ],
    [
      'an inline fragment that includes something',
      { a: '-- A.\n\n-- @inline one\n', 'include/one': '-- One.\n\n-- @include two\n' },
      'include/one.lua:3: an inline fragment contains only code, and other fragments',
    ],
    [
      'an inline fragment inside of itself',
      {
        a: '-- A.\n\n-- @inline one\n',
        'include/one': '-- One.\n\n-- @inline two\n',
        'include/two': '-- Two.\n\n-- @inline one\n',
      },
      'include/two.lua:3: a circle: include/one.lua inlines include/two.lua inlines include/one.lua',
    ],
  ])('refuses %s, and says where', (_, files, message) => {
    write(files);
    expect(() => assembleAll(folder)).toThrow(message);
  });
});

describe('the generated module', () => {
  it('holds the same text, whatever stands in it', async () => {
    write({
      'a-b': "-- A.\n\nlocal a = '\\n`${x}$&'\n\n-- @include one\n\nreturn a\n",
      'include/one': '-- One.\n\nlocal one = 1\n',
    });
    const module = generate(assembleAll(folder)).replace(' as const', '');
    const url = `data:text/javascript,${encodeURIComponent(module)}`;
    const { SCRIPT_TEXTS } = (await import(url)) as { SCRIPT_TEXTS: Record<string, string> };
    expect(SCRIPT_TEXTS).toEqual({ aB: assembled('a-b') });
  });

  it('names the pieces of a script by their order, not by their lines', () => {
    const text = 'local a = 1\n\n-- @include one\n\nreturn a\n';
    write({ a: `-- A.\n\n${text}`, 'include/one': '-- One.\n\nlocal one = 1\n' });
    const before = generate(assembleAll(folder));
    write({ a: `-- A.\n-- More of it.\n\n${text}` });
    expect(generate(assembleAll(folder))).toBe(before);
  });
});
