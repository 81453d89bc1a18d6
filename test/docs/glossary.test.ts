import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, tablesOf } from './guides.js';

const GLOSSARY = 'docs/internals/glossary.md';

const [retired] = tablesOf(GLOSSARY).filter(({ header }) => header[0] === 'Do not write');

/** Those that no file of lib/ may have: in code type. */
const refused = retired!.rows.flatMap(([words]) => [...words!.matchAll(/`(\w+)`/g)].map(([, word]) => word!));

/** These stand in Lua scripts. Their text stays as it is: Redis knows a script by its text. */
const KEPT_IN_LUA = ['somebody', 'nobody', 'everybody', 'whoever'];

/** Where a word stands, also as a part of a longer name: `seat` in `freeSeats`, but not in `releaseAtNodes`. */
function findWord(word: string, text: string): string[] {
  return text.split('\n').flatMap((line, index) => {
    const parts = line.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
    return parts.some((part) => part.toLowerCase().startsWith(word)) ? [`${index + 1}: ${line.trim()}`] : [];
  });
}

describe('the glossary', () => {
  const sources = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(?:ts|lua)$/.test(name),
  );

  it('refuses some words', () => {
    expect(refused).toEqual(expect.arrayContaining(['tenure', 'heir', 'somebody', 'whoever']));
    expect(sources.length).toBeGreaterThan(100);
    expect(findWord('tenure', 'const a = 1;\nconst localTenures = [];')).toEqual(['2: const localTenures = [];']);
    expect(findWord('seat', 'releaseAtNodes();\nfreeSeats();\nTHE_SEAT')).toEqual(['2: freeSeats();', '3: THE_SEAT']);
  });

  it.each(KEPT_IN_LUA)('a Lua script does say "%s"', (word) => {
    const scripts = sources.filter((name) => name.endsWith('.lua'));
    expect(scripts.some((name) => findWord(word, readFileSync(join(ROOT, 'lib', name), 'utf8')).length > 0)).toBe(true);
  });

  it.each(refused)('lib/ does not say "%s"', (word) => {
    const places = sources.filter((name) => !KEPT_IN_LUA.includes(word) || !/\.lua$|scripts\.generated/.test(name));
    const found = places.flatMap((name) => [
      ...findWord(word, name).map(() => `${name}: its name`),
      ...findWord(word, readFileSync(join(ROOT, 'lib', name), 'utf8')).map((place) => `${name}:${place}`),
    ]);
    expect(found).toEqual([]);
  });

  const words = tablesOf(GLOSSARY)
    .filter(({ header }) => header[0] === 'Word')
    .flatMap(({ rows }) => rows.map(([word]) => word!));

  it('names no type that is not there', () => {
    const types = words.flatMap((word) => /^`([A-Z]\w+)`$/.exec(word)?.[1] ?? []);
    const text = sources.map((name) => readFileSync(join(ROOT, 'lib', name), 'utf8')).join('\n');
    expect(types).toContain('StoreLease');
    expect(types.filter((type) => !new RegExp(`(?:class|interface|type) ${type}\\b`).test(text))).toEqual([]);
  });

  it('has each word once', () => {
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  });
});
