import { PassThrough } from 'node:stream';
import { durationCell, type Found, Output, timeCell } from '../../../lib/extras/cli/frame/output.js';
import { longDuration } from '../../../lib/kernel/util/durations.js';
import { Terminal } from '../../../lib/extras/cli/frame/terminal.js';

function printed(found: Found, { isTerminal = false, isJson = false, env = {} } = {}): string {
  const stdout = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = new PassThrough();
  const terminal = new Terminal({ stdin: new PassThrough(), stderr });
  new Output({ stdout, stderr, env }, terminal, isJson).print(found);
  expect(stderr.read()).toBeNull();
  return String(stdout.read() ?? '');
}

const found: Found = {
  json: { locks: ['a'] },
  shown: [
    {
      columns: ['RESOURCE', 'LEFT'],
      rows: [
        ['order:7', durationCell(591_000)],
        ['b', durationCell(20)],
      ],
    },
  ],
};

it('the output is a table with a heading on a terminal', () => {
  expect(printed(found, { isTerminal: true, env: { NO_COLOR: '1' } })).toBe(
    'RESOURCE  LEFT\norder:7   9 min 51 s\nb         20 ms\n',
  );
});

it.each([
  [{}, true],
  [{ NO_COLOR: '' }, true],
  [{ NO_COLOR: '1' }, false],
  [{ TERM: 'dumb' }, false],
])('the table has a bold heading unless %j forbids it', (env, isBold) => {
  expect(printed(found, { isTerminal: true, env }).startsWith('\u001b[1m')).toBe(isBold);
});

it('the output has one line per row elsewhere, without a heading, and with whole milliseconds', () => {
  expect(printed(found)).toBe('order:7\t591000\nb\t20\n');
});

it('the JSON output is one line, with the version of the schema', () => {
  expect(printed(found, { isJson: true, isTerminal: true })).toBe('{"schemaVersion":1,"locks":["a"]}\n');
});

it('an empty table has a message on a terminal, and no output elsewhere', () => {
  const nothing = { json: {}, shown: [{ columns: ['A'], rows: [], ifEmpty: 'Nothing.' }] };
  expect(printed(nothing, { isTerminal: true })).toBe('Nothing.\n');
  expect(printed(nothing)).toBe('');
});

it('control characters of a name are escaped, so that rows, columns and the terminal are safe', () => {
  const name = 'a\u001b[2J\tb\nc\u202ed\u009b';
  const hostile = { json: { name }, shown: [{ columns: ['A', 'B'], rows: [[name, 'end']] }] };
  expect(printed(hostile)).toBe('a\\u001b[2J\\u0009b\\u000ac\\u202ed\\u009b\tend\n');
  const json = printed(hostile, { isJson: true });
  expect(json).not.toMatch(/[^\n\x20-\x7e]/);
  expect(JSON.parse(json)).toEqual({ schemaVersion: 1, name });
});

it.each([
  [20, '20 ms'],
  [1_500, '1.5 s'],
  [119_000, '119 s'],
  [591_000, '9 min 51 s'],
  [600_000, '10 min'],
  [7_500_000, '2 h 5 min'],
  [90_061_000, '1 d 1 h'],
])('%d ms are %s', (ms, text) => expect(longDuration(ms)).toBe(text));

it('times are relative for a person, and absolute for a program', () => {
  expect(timeCell(1_000, 4_000)).toEqual({ shown: '3 s ago', raw: '1970-01-01T00:00:01.000Z' });
  expect(timeCell(5_000, 4_000)).toMatchObject({ shown: 'in 1 s' });
});
