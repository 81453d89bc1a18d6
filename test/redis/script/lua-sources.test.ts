import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assembleAll } from '../../../tools/lua/assemble.mjs';
import { generate } from '../../../tools/lua/generate.mjs';

const LUA = join(import.meta.dirname, '../../../lib/redis/lua');
const GENERATED = join(LUA, '../script/scripts.generated.ts');

/** The comment at the top, without the dashes. */
function headerOf(file: string): string[] {
  const lines = readFileSync(join(LUA, file), 'utf8').split('\n');
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
  const code = readFileSync(join(LUA, `${script}.lua`), 'utf8').replace(/^ *--.*$/gm, (line) =>
    line.includes('@inline') ? line : '',
  );
  const numbers = [...code.matchAll(new RegExp(`\\b${word}\\[(\\d+)\\]`, 'g'))].map(([, number]) => Number(number));
  for (const [, names, from] of code.matchAll(new RegExp(`local (.+) = unpack\\(${word}(?:, (\\d+), \\d+)?\\)`, 'g'))) {
    names!.split(',').forEach((_, index) => numbers.push(Number(from ?? 1) + index));
  }
  return [...new Set(numbers)].sort((a, b) => a - b).map(String);
}

const scripts = [...assembleAll(LUA).keys()];
const fragments = readdirSync(join(LUA, 'include')).map((file) => `include/${file}`);

describe('the .lua files', () => {
  it('are what the generated module holds; if not: npm run lua', () => {
    expect(readFileSync(GENERATED, 'utf8')).toBe(generate(assembleAll(LUA)));
  });

  it.each(scripts)('%s says what it does, and what its keys, arguments and replies are', (script) => {
    const header = headerOf(`${script}.lua`);
    expect(header[0]).toMatch(/^[A-Z]/);
    expect(
      header.filter((line) => /^(KEYS|ARGV|Reply) {2,3}\S/.test(line)).map((line) => line.slice(0, 5).trim()),
    ).toEqual(['KEYS', 'ARGV', 'Reply']);
  });

  it.each(scripts.filter((script) => script !== 'guard'))(
    '%s names every key and argument that it uses, and no other',
    (script) => {
      const header = headerOf(`${script}.lua`);
      expect(numbersIn(header, 'KEYS')).toEqual(numbersUsed(script, 'KEYS'));
      expect(numbersIn(header, 'ARGV')).toEqual(numbersUsed(script, 'ARGV'));
    },
  );

  it.each(fragments)('%s says what it is for', (fragment) => {
    expect(headerOf(fragment).join(' ')).toMatch(/\w{3,} \w+/);
  });

  it('include every fragment that there is', () => {
    const used = new Set(
      [...scripts.map((script) => `${script}.lua`), ...fragments].flatMap((file) =>
        [...readFileSync(join(LUA, file), 'utf8').matchAll(/^\s*-- @(?:include|inline) (\S+)/gm)].map(
          ([, name]) => `include/${name}.lua`,
        ),
      ),
    );
    expect([...used].sort()).toEqual(fragments.sort());
  });
});
