import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, tablesOf } from './guides.js';

describe('the glossary', () => {
  const words = tablesOf('docs/internals/glossary.md')
    .filter(({ header }) => header[0] === 'Word')
    .flatMap(({ rows }) => rows.map(([word]) => word!));

  it('names no type that does not exist', () => {
    const types = words.flatMap((word) => /^`([A-Z]\w+)`$/.exec(word)?.[1] ?? []);
    const text = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(ROOT, 'lib', name), 'utf8'))
      .join('\n');
    expect(types).toContain('StoreLease');
    expect(types.filter((type) => !new RegExp(`(?:class|interface|type) ${type}\\b`).test(text))).toEqual([]);
  });

  it('has each word once', () => {
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  });
});
