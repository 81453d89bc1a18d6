import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { assembleAll, isFragment, luaFilesIn } from '../../../tools/lua/assemble.mjs';
import { generate } from '../../../tools/lua/generate.mjs';

const LIB = join(import.meta.dirname, '../../../lib');
const GENERATED = join(LIB, 'redis/script/scripts.generated.ts');

/** The comment at the top, without the dashes. */
function headerOf(file: string): string[] {
  const lines = readFileSync(join(LIB, file), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--') || line.startsWith('-- @'));
  return lines.slice(0, end).map((line) => line.slice(3));
}

/** The numbers of the items below a word of the header: "KEYS   1  lock", and the lines after it until the next word. */
function numbersIn(header: readonly string[], word: string): string[] {
  const begin = header.findIndex((line) => line.startsWith(`${word} `));
  if (begin < 0) throw new Error(`no ${word}`);
  const rest = header.slice(begin + 1).findIndex((line) => line !== '' && !line.startsWith(' '));
  const section = header.slice(begin, rest < 0 ? undefined : begin + 1 + rest);
  return section.flatMap((line) => /^(?:\w+ +| {7})(\d+)(?:\.\.\.)? {2}\S/.exec(line)?.[1] ?? []);
}

/** The numbers with which the code of a script uses KEYS or ARGV, in order. */
function numbersUsed(script: string, word: string): string[] {
  const code = readFileSync(join(LIB, script), 'utf8').replace(/^ *--.*$/gm, (line) =>
    line.includes('@inline') ? line : '',
  );
  const numbers = [...code.matchAll(new RegExp(`\\b${word}\\[(\\d+)\\]`, 'g'))].map(([, number]) => Number(number));
  for (const [, names, from] of code.matchAll(new RegExp(`local (.+) = unpack\\(${word}(?:, (\\d+), \\d+)?\\)`, 'g'))) {
    names!.split(',').forEach((_, index) => numbers.push(Number(from ?? 1) + index));
  }
  return [...new Set(numbers)].sort((a, b) => a - b).map(String);
}

const files = luaFilesIn(LIB);
const scripts = files.filter((file) => !isFragment(file));
const fragments = files.filter(isFragment);

describe('the .lua files', () => {
  it('are what the generated module holds; if not: npm run lua', () => {
    expect(readFileSync(GENERATED, 'utf8')).toBe(generate(assembleAll(LIB)));
  });

  it.each(scripts)('%s says what it does, and what its keys, arguments and replies are', (script) => {
    const header = headerOf(script);
    expect(header[0]).toMatch(/^[A-Z]/);
    expect(
      header.filter((line) => /^(KEYS|ARGV|Reply) {2,3}\S/.test(line)).map((line) => line.slice(0, 5).trim()),
    ).toEqual(['KEYS', 'ARGV', 'Reply']);
  });

  it.each(scripts.filter((script) => !script.endsWith('/guard.lua')))(
    '%s names every key and argument that it uses, and no other',
    (script) => {
      const header = headerOf(script);
      expect(numbersIn(header, 'KEYS')).toEqual(numbersUsed(script, 'KEYS'));
      expect(numbersIn(header, 'ARGV')).toEqual(numbersUsed(script, 'ARGV'));
    },
  );

  it.each(fragments)('%s says what it is for', (fragment) => {
    expect(headerOf(fragment).join(' ')).toMatch(/\w{3,} \w+/);
  });

  it('include every fragment that there is', () => {
    const used = new Set(
      files.flatMap((file) =>
        [...readFileSync(join(LIB, file), 'utf8').matchAll(/^\s*-- @(?:include|inline) (\S+)/gm)].map(
          ([, name]) => `${name}.lua`,
        ),
      ),
    );
    expect([...used].sort()).toEqual(fragments.map((file) => basename(file)));
  });
});
