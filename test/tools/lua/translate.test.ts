import { translate } from '../../../tools/lua/translate.mjs';

/** What becomes of the code of one script. */
async function translated(...code: string[]): Promise<string> {
  const lines = code.map((text, index) => ({ file: 'x.lua', number: index + 1, text }));
  const text = await translate(new Map([['x', [{ file: 'x.lua', lines }]]]));
  return /function xScript\([^)]*\): Value \{\n([\s\S]*?)\n\}\n/.exec(text)![1]!.replace(/\s+/g, ' ').trim();
}

describe('the translation of a script', () => {
  it.each([
    ['counts lists from 0', ["local head = redis.call('ZRANGE', KEYS[1], 0, 1)", 'return head[2]'], 'return head[1];'],
    ['appends to a list', ['local gone = {}', 'gone[#gone + 1] = KEYS[1]'], 'gone.push(KEYS[0]);'],
    [
      'takes 0 and an empty text for true',
      ["if tonumber(ARGV[1]) then return '' end"],
      'lua.number(ARGV[0]) !== undefined',
    ],
    ['adds texts as numbers', ['return ARGV[1] + 1'], 'return Number(ARGV[0]) + 1;'],
    ['joins numbers as texts', ["return 1 .. ' ' .. #KEYS"], 'return `${1} ${KEYS.length}`;'],
    ['writes patterns as regular expressions', ["return string.match(KEYS[1], '^(%S+) {-}$')"], '/^(\\S+) \\{*?\\}$/'],
    [
      'catches errors of Redis only where pcall does',
      ["return redis.pcall('GET', KEYS[1])"],
      'lua.tried(() => redis.get(KEYS[0]))',
    ],
    ['gives the second of two equal names another one', ['local a = 1', 'local a = a + 1', 'return a'], 'return a2;'],
    ['returns several values as a list', ['local function f() return 1, 2 end', 'return (f())'], 'return f()[0];'],
    ['takes a part of a list', ['local a, b = unpack(ARGV, 3, 4)'], 'const [a, b]: Value = ARGV.slice(2, 4);'],
    [
      'ends a list of values at nil',
      ['local function f() return 1, 2 end', 'local _, b = f()', 'return b'],
      'const [, b]: Value = f();',
    ],
  ])('%s', async (_, code, expected) => {
    expect(await translated(...code)).toContain(expected);
  });

  it.each([
    ['a function of Lua', ["return string.rep('a', 2)"], 'not understood: string.rep()'],
    ['an argument', ['return tonumber(KEYS[1], 16)'], 'not understood: tonumber() with 2 arguments'],
    ['a statement', ['repeat break until true'], 'not understood: RepeatStatement'],
    ['a class of a pattern', ["return string.match(KEYS[1], '%p')"], '%p of a pattern is not known'],
    ['a mistake in the syntax', ['return return'], 'x.lua:'],
  ])('stops at %s that it does not know', async (_, code, message) => {
    await expect(translated(...code)).rejects.toThrow(message);
  });
});
