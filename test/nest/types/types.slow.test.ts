import { readdirSync, readFileSync } from 'node:fs';
import { type Answer, compile, TYPES_FOLDER } from './compile.js';

const fixtures = readdirSync(TYPES_FOLDER).filter((name) => name.endsWith('.ts'));

describe('the compiler', () => {
  let answersTo: (file: string) => Answer[];

  beforeAll(() => {
    answersTo = compile(fixtures);
  }, 60_000);

  it.each(fixtures)('accepts what is right and refuses what is marked as wrong in test/types/%s', (fixture) => {
    expect(readFileSync(TYPES_FOLDER + fixture, 'utf8')).toContain('@ts-expect-error');
    expect(answersTo(fixture)).toEqual([]);
  });
});
