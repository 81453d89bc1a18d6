import { GUIDES, readGuide } from './guides.js';

/** What users read. The internals have words of their own, and the changelog tells of what was. */
const written = GUIDES.filter(
  (path) => path === 'README.md' || /^docs\/(guide|operations|migration|[\w-]+\.md)/.test(path),
);

/** The log is quoted there, in the words of the messages. */
const pages = written.filter((path) => path !== 'docs/operations/logs.md');

/** By the word that is not written, the one in its place. */
const REFUSED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bcohorts?\b/i, 'passing on in memory'],
  [/\bfencing ticks?\b/i, 'fencing token'],
  [/\b(?:keep|keeps|kept|keeping) (?:its|their|your|the) places?\b/i, 'stay in the queue'],
  [/\b(?:is|are|was|were) over\b/i, 'has ended'],
  [/\b(?:stands?|stood|standing) still\b|\bstandstill\b/i, 'is paused'],
  [/\b(?:somebody|someone|anybody|nobody|everybody|whoever)\b/i, 'the process, the holder, the caller'],
  [/\b(?:tells|telling) (?:of|how|that|its|the)\b/i, 'reports, logs, says'],
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

it('no item of a list begins with a pronoun whose noun is elsewhere', () => {
  expect(found(/^ *(?:[-*]|\d+\.) +(?:\*\*)?(?:It|They|These|Those|This|He|She)\b/)).toEqual([]);
});

it('the first guide explains five words before all others', () => {
  const [, box] = /^# .*\n\n((?:>.*\n)+)/.exec(readGuide('docs/guide/getting-started.md')) ?? [];
  for (const word of ['lease', 'holder', 'waiter', 'fencing token', 'tick']) expect(box).toContain(`**${word}**`);
});
