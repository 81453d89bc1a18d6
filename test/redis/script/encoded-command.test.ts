import { jest } from '@jest/globals';
import type { Command, Redis } from 'ioredis';
import { ASKING, ScriptRunner } from '../../../lib/redis/script/script-runner.js';
import { type ScriptCall, scriptOf, type ScriptSender } from '../../../lib/redis/script/script.js';

interface Texts {
  lua?: string;
  keys?: readonly string[];
  args?: readonly (string | number)[];
}

/** The bytes that ioredis would write. */
function written(sender: ScriptSender, { lua = 'return 1', keys = [], args = [] }: Texts): string {
  const sent: Command[] = [];
  const client = {
    asking: () => Promise.resolve(),
    sendCommand(command: Command) {
      sent.push(command);
      command.resolve(null);
      return command.promise;
    },
  } as unknown as Redis;
  const call = { script: scriptOf('test', lua), keys, args, read: (reply: unknown) => reply };
  void sender.send(client, call as unknown as ScriptCall<unknown>, (error) => Promise.reject(error as Error));
  expect(sent).toHaveLength(1);
  return sent[0]!.toWritable(undefined as never) as string;
}

/** Reads as a server does: the lengths are in bytes. */
function parts(text: string): string[] {
  const bytes = Buffer.from(text);
  let at = 0;
  const line = (mark: string): number => {
    const end = bytes.indexOf('\r\n', at);
    const head = bytes.toString('utf8', at, end);
    at = end + 2;
    expect(head).toMatch(new RegExp(`^[${mark}]\\d+$`));
    return Number(head.slice(1));
  };
  const read = Array.from({ length: line('*') }, () => {
    const size = line('$');
    const part = bytes.toString('utf8', at, at + size);
    expect(bytes.toString('utf8', at + size, at + size + 2)).toBe('\r\n');
    at += size + 2;
    return part;
  });
  expect(at).toBe(bytes.length);
  return read;
}

const TEXTS: [string, Texts][] = [
  ['ASCII alone', { keys: ['lock:{stock}', 'lock:fence'], args: ['shop/1/secret', 30_000, ''] }],
  ['two, three and four bytes a character', { keys: ['lock:{é}'], args: ['日本', 'a🔒b'] }],
  ['the last argument alone', { keys: ['lock:{stock}'], args: ['shop', 5, 'über'] }],
  ['a key alone', { keys: ['lock:{café}', 'lock:fence'], args: ['shop', 'x'.repeat(300)] }],
  // Redis gets what UTF-8 has in its place.
  ['half a character', { keys: ['lock:{stock}'], args: ['a\ud83d', 'z'] }],
  ['line ends within', { keys: ['lock:{é\r\n$3}'], args: ['\r\n', 'ü\r\n'] }],
];

describe('a command of a script, encoded for the wire', () => {
  const wellFormed = (text: string | number): string => Buffer.from(String(text)).toString();

  it.each(TEXTS)('has the bytes of each part before it: %s', (_, texts) => {
    const { keys = [], args = [] } = texts;
    const expected = [String(keys.length), ...keys, ...args].map(wellFormed);
    expect(parts(written(new ScriptRunner(), texts))).toEqual([
      'evalsha',
      scriptOf('test', 'return 1').sha,
      ...expected,
    ]);
    expect(parts(written(ASKING, texts))).toEqual(['eval', 'return 1', ...expected]);
  });

  it('has the bytes of the text of the script, too', () => {
    const lua = "return 'é🔒'";
    expect(parts(written(ASKING, { lua, args: ['x'] }))).toEqual(['eval', lua, '0', 'x']);
  });

  describe('counts bytes', () => {
    afterEach(() => jest.restoreAllMocks());

    /** The number of counts for one command. */
    function counts(texts: Texts): number {
      const byteLength = jest.spyOn(Buffer, 'byteLength');
      written(new ScriptRunner(), texts);
      return byteLength.mock.calls.length;
    }

    it('once if each character is a byte, however many parts there are', () => {
      expect(counts({ keys: ['a', 'b', 'c'], args: Array.from({ length: 20 }, String) })).toBe(1);
    });

    it('of each part otherwise: the number of keys, the keys and the arguments', () => {
      expect(counts({ keys: ['a', 'b', 'é'], args: ['d', 'e'] })).toBe(1 + 1 + 3 + 2);
    });
  });
});
