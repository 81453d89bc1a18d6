import { GUIDES, readGuide } from './guides.js';

/** The pages for users. The internals have words of their own. */
const written = GUIDES.filter(
  (path) => path === 'README.md' || /^docs\/(guide|operations|migration|[\w-]+\.md)/.test(path),
);

/** The rule is 25. The few longer sentences are lists of names. */
const MAX_WORDS = 28;

/** Excluded because it quotes the log. */
const pages = written.filter((path) => path !== 'docs/operations/logs.md');

/** The lines of a page without code, quotes and names. */
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

/** The sentences of a page, without tables, headings, links and code. */
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

/** The page of benchmarks quotes machines and other programs. */
it.each(pages.filter((page) => page !== 'docs/operations/benchmarks.md'))('%s has sentences of one idea', (page) => {
  const long = sentencesOf(page).filter(
    (sentence) => sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length > MAX_WORDS,
  );
  expect(long).toEqual([]);
});

it('no list item begins with a pronoun whose noun is elsewhere', () => {
  expect(found(/^ *(?:[-*]|\d+\.) +(?:\*\*)?(?:It|They|These|Those|This|He|She)\b/)).toEqual([]);
});

it('the first guide explains five words before all others', () => {
  const [, box] = /^# .*\n\n((?:>.*\n)+)/.exec(readGuide('docs/guide/getting-started.md')) ?? [];
  for (const word of ['lease', 'holder', 'waiter', 'fencing token', 'tick']) expect(box).toContain(`**${word}**`);
});
