import { RepeatedLines } from '../../../lib/nest/log/repeated-lines.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const MINUTE_MS = 60_000;

describe('lines that repeat', () => {
  let clock: FakeClock;
  let written: string[];
  let lines: RepeatedLines;
  const add = (kind: string, resource: string, text?: string): boolean =>
    lines.add(
      kind,
      resource,
      `${text ?? kind} of ${resource}`,
      (more, names) => `${more} more ${kind}: ${names}`,
      text,
    );

  beforeEach(() => {
    clock = new FakeClock();
    written = [];
    lines = new RepeatedLines(clock, (line) => written.push(line));
  });

  it('are written once, and then summed up each minute, with the names of five', async () => {
    expect(add('loss', 'a')).toBe(true);
    for (const name of ['b', 'c', 'b', 'd', 'e', 'f', 'g', 'h']) expect(add('loss', name)).toBe(false);
    expect(written).toEqual(['loss of a']);
    await clock.advance(MINUTE_MS);
    expect(written.slice(1)).toEqual(['8 more loss: "b", "c", "d", "e", "f" and 2 more']);
    add('loss', 'x');
    await clock.advance(MINUTE_MS);
    expect(written.slice(2)).toEqual(['1 more loss: "x"']);
  });

  it('leave no timer behind once they are closed: what is counted is written, and each line after that', () => {
    add('loss', 'a');
    add('loss', 'b');
    lines.close();
    add('loss', 'c');
    add('loss', 'd');
    expect(written).toEqual(['loss of a', '1 more loss: "b"', 'loss of c', 'loss of d']);
    expect(clock.timers).toBe(0);
  });

  it('of another kind are written', () => {
    add('loss', 'a');
    add('leak', 'a');
    expect(written).toEqual(['loss of a', 'leak of a']);
  });

  it('of more than fifty kinds count as one kind, so that texts from elsewhere fill no memory', async () => {
    for (let text = 0; text < 1_000; text++) add('failure', 'a', `text ${text}`);
    expect(written).toHaveLength(51);
    expect(clock.timers).toBe(51);
    await clock.advance(MINUTE_MS);
    expect(written.at(-1)).toBe('949 more lines were left out, about "a".');
  });

  it('without such a text are written however many kinds there are', () => {
    for (let text = 0; text < 1_000; text++) add('failure', 'a', `text ${text}`);
    expect(add('loss', 'a')).toBe(true);
    expect(written.at(-1)).toBe('loss of a');
  });

  it('escape what a name could do to a terminal', () => {
    add('loss', 'a');
    add('loss', '\u001b[2J\u202e');
    lines.flush();
    expect(written.at(-1)).toBe('1 more loss: "\\u001b[2J\\u202e"');
  });
});
