import { execFileSync } from 'node:child_process';
import { inspect } from 'node:util';
import { LockBusyError, quoteResource } from '../../../lib/kernel/api/errors.js';
import { describeValue } from '../../../lib/kernel/api/validation.js';
import { commandLine } from '../../../lib/kernel/util/quoted.js';
import { settle } from '../../support/world/fake-clock.js';
import { LockWorld } from '../../support/world/lock-world.js';

/** Characters that a terminal executes, and that reverse or hide the text around them. */
const HOSTILE = [
  '\u0000',
  '\u001b',
  '\u007f',
  '\u0085',
  '\u009b',
  '\u061c',
  '\u200b',
  '\u200e',
  '\u200f',
  '\u2028',
  '\u2029',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2067',
  '\u2068',
  '\u2069',
  '\ufeff',
];
const codeOf = (character: string): string => `U+${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

describe('a name with a character that a terminal executes, or that hides others', () => {
  it.each(HOSTILE.map((character) => [codeOf(character), character]))(
    'is shown with an escape in place of it: %s',
    async (_code, character) => {
      const name = `order:${character}7`;
      const { locks } = new LockWorld().instance('a');
      const lease = await locks.acquire(name);
      await settle();
      const texts = [
        quoteResource(name),
        quoteResource([name, 'other']),
        describeValue(name),
        new LockBusyError(name, 1, 0).message,
        inspect(lease),
        inspect({ lease }),
      ];
      for (const text of texts) {
        expect(text).not.toContain(character);
        expect(text).toMatch(/order:\\(u[0-9a-f]{4}|x[0-9A-F]{2})7/);
      }
      await lease.release();
    },
  );

  it('remains unique, and other names are shown as they are', async () => {
    const { locks } = new LockWorld().instance('a');
    const lease = await locks.acquire('a\u202eb');
    expect(lease.resource).toBe('a\u202eb');
    expect(JSON.parse(quoteResource('a\u202e\u009bb'))).toBe('a\u202e\u009bb');
    for (const name of ['order:7', 'é 🔒 한국어', 'שלום', 'ن\u200cم', '👩\u200d💻', '"quoted\\"']) {
      expect(quoteResource(name)).toBe(JSON.stringify(name));
    }
  });

  it('is cut if it is long', () => {
    expect(quoteResource('x'.repeat(81))).toBe(`"${'x'.repeat(77)}..."`);
    expect(describeValue('x'.repeat(61))).toBe(`"${'x'.repeat(57)}..."`);
  });
});

describe('a name in a command line to paste', () => {
  it.each([
    ['order:7', 'order:7 --yes'],
    ['user@example.org/a+b-c', 'user@example.org/a+b-c --yes'],
    ['a b', "'a b' --yes"],
    ['order:7$(id)', "'order:7$(id)' --yes"],
    ["it's `id`", `'it'\\''s \`id\`' --yes`],
    ['~', "'~' --yes"],
    ['=ls', "'=ls' --yes"],
    ['-f', '--yes -- -f'],
    ['é 🔒', "'é 🔒' --yes"],
    ["a\nb'\\!\u202ec", String.raw`$'a\012b\047\134!\342\200\256c' --yes`],
  ])('%j is one argument: %s', (name, args) => {
    const line = commandLine('release', name, '--yes');
    expect(line).toBe(`npx nestjs-redis-lock release ${args}`);
    const printed = execFileSync('bash', ['-c', `npx() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' });
    expect(printed.split('\0')).toContain(name);
  });
});
