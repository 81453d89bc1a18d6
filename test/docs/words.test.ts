import { count, isNounClause, MAX_NOUN_CLAUSES, MIN_YOU, PATTERNS, readTexts } from '../../tools/words/count.mjs';

const texts = readTexts();

describe.each(['docs', 'comments', 'messages'] as const)('the %s', (kind) => {
  it.each(PATTERNS)('have at most $max of "$name" per 1,000 words', ({ pattern, max }) => {
    const { places, rate } = count(texts[kind], pattern);
    expect(rate > max ? places : []).toEqual([]);
  });
});

it('the docs talk to the reader', () => {
  expect(count(texts.docs, /\byou(?:rs?)?\b/gi).rate).toBeGreaterThanOrEqual(MIN_YOU);
});

it('doc comments start with a verb or a noun', () => {
  const clauses = texts.heads.filter(isNounClause);
  expect(texts.heads.length).toBeGreaterThan(1_000);
  expect(clauses.length > MAX_NOUN_CLAUSES * texts.heads.length ? clauses : []).toEqual([]);
});

it('limits are called MAX_ and MIN_', () => {
  expect(texts.superlatives).toEqual([]);
});

it.each([
  ['told', 'An observer is told of the loss.'],
  ['says', 'The error says which lock it was.'],
  ['where', 'Set, where a label was given, or not where the lock is free.'],
  ['that of', 'It waits like that of the quorum.'],
  ['Of each', 'It asks all. Of each answer, the first line counts.'],
  ['in vain', 'The call waits in vain, and the process stood still.'],
  ['nobody', 'Nobody polls.'],
  ['so long', 'It is kept for so long.'],
])('the count of "%s" finds: %s', (name, text) => {
  const { pattern } = PATTERNS.find((each) => each.name === name)!;
  const { places, rate } = count([{ path: 'a.md', text }], pattern);
  expect(places).toContain(`a.md: ${text}`);
  expect(rate).toBeGreaterThan(50);
});
