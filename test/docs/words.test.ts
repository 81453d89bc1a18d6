import { GUIDES, readGuide } from './guides.js';

/** What users read. The internals have words of their own, and the changelog tells of what was. */
const written = GUIDES.filter(
  (path) => path === 'README.md' || /^docs\/(guide|operations|migration|[\w-]+\.md)/.test(path),
);

/** 25 is the rule for what is written. The few that have more are lists of names. */
const MAX_WORDS = 28;

/** The log is quoted there, in the words of the messages. */
const pages = written.filter((path) => path !== 'docs/operations/logs.md');

/** By the word that is not written, the one in its place. */
const REFUSED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bcohorts?\b/i, 'passing on in memory'],
  [/\bfencing ticks?\b/i, 'fencing token'],
  [/\b(?:keep|keeps|kept|keeping) (?:its|their|your|the) places?\b/i, 'stay in the queue'],
  [
    /(?<!readiness |liveness |Kubernetes |for a |: )\bprob(?:e|es|ed|ing)\b(?!, (?:graceful|rolling))/i,
    'a message to itself',
  ],
  [/\bheartbeats?\b|\bseals?\b|\binbox of\b/i, 'asks every second, a message'],
  [/\b(?:be|been|is|are|was|were) had\b|\bhas had the lock\b/i, 'obtained'],
  [/\bhand(?:s|ed|ing)? (?:on|over)\b/i, 'pass on, in memory'],
  [/\b(?:is|are|was|were) over\b/i, 'has ended'],
  [/\b(?:stands?|stood|standing) still\b|\bstandstill\b/i, 'is paused'],
  [/\b(?:somebody|someone|anybody|nobody|everybody|whoever)\b/i, 'the process, the holder, the caller'],
  [/\btells\b(?! .{1,40} apart)/i, 'reports, logs, says'],
  [/\bnot un\w+|\bnever not\b|\bcannot not\b/i, 'the same without two negations'],
];

/** Without code, quotes and names: what the page says itself. */
function proseOf(page: string): string[] {
  return readGuide(page)
    .replace(/^( *)```\w*\n[^]*?^\1```$/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/^<!--.*-->$/gm, '')
    .split('\n')
    .map((line) => (line.startsWith('>') ? '' : line.replace(/`[^`]*`/g, '').replace(/"[^"]*"/g, '')));
}

const found = (rule: RegExp): string[] =>
  pages.flatMap((page) =>
    proseOf(page).flatMap((line, index) => (rule.test(line) ? [`${page}:${index + 1}: ${line.trim()}`] : [])),
  );

it.each(REFUSED)('no guide says %s, but "%s"', (rule) => {
  expect(found(rule)).toEqual([]);
});

/** What a page says, without tables, headings, links and code, a sentence each. */
function sentencesOf(page: string): string[] {
  const text = readGuide(page)
    .replaceAll(/^( *)```\w*\n[^]*?^\1```$/gm, '\n')
    .replaceAll(/^(?:<!--|\||#|>).*$/gm, '')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/`[^`]*`/g, '`code`');
  return text
    .split(/\n\s*\n|\n(?= *(?:[-*]|\d+\.) )/)
    .flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?:])(?:\*\*)? (?=[A-Z\d`*"[])/));
}

/** What is quoted of machines and of other programs is as long as it is. */
it.each(pages.filter((page) => page !== 'docs/operations/benchmarks.md'))('%s has sentences of one idea', (page) => {
  const long = sentencesOf(page).filter(
    (sentence) => sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length > MAX_WORDS,
  );
  expect(long).toEqual([]);
});

it('no item of a list begins with a pronoun whose noun is elsewhere', () => {
  expect(found(/^ *(?:[-*]|\d+\.) +(?:\*\*)?(?:It|They|These|Those|This|He|She)\b/)).toEqual([]);
});

it('the first guide explains five words before all others', () => {
  const [, box] = /^# .*\n\n((?:>.*\n)+)/.exec(readGuide('docs/guide/getting-started.md')) ?? [];
  for (const word of ['lease', 'holder', 'waiter', 'fencing token', 'tick']) expect(box).toContain(`**${word}**`);
});
