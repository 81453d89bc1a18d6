import { basename } from 'node:path';
import { GUIDES, readGuide } from './guides.js';

/** A page more, or a word more, has to be worth it: shorten or join others first. */
const MOST_PAGES = 60;
const MOST_WORDS = 55_000;
const MOST_BYTES_PACKED = 454 * 1024;

/** What people write: the whole page, with its code and tables. The tables of docs/reference are generated. */
const pages = GUIDES.filter((path) => path.startsWith('docs/') && !path.startsWith('docs/reference/'));

/** A text between spaces that has a letter or a digit: no bar of a table, no dash, no brace of code. */
function countWords(text: string): number {
  return text.split(/\s+/).filter((part) => /[\p{L}\p{N}]/u.test(part)).length;
}

/** As `files` in package.json has them. */
const packed = GUIDES.filter(
  (path) =>
    /^docs\/(?:(?:guide|migration|operations|reference)\/)?[^/]+$/.test(path) &&
    !['benchmarks.md', 'reliability.md'].includes(basename(path)),
);

it('counts words, and nothing else', () => {
  expect(countWords('| One word | `a.b()` |\n| --- | --- |\n - { } => 2')).toBe(4);
});

it(`there are at most ${MOST_PAGES} pages beside the reference`, () => {
  expect(pages.length).toBeLessThanOrEqual(MOST_PAGES);
});

it(`they have at most ${MOST_WORDS} words`, () => {
  const words = pages.reduce((sum, page) => sum + countWords(readGuide(page)), 0);
  expect(words).toBeLessThanOrEqual(MOST_WORDS);
});

it(`the pages in the package have at most ${MOST_BYTES_PACKED} bytes`, () => {
  // As the package has them: without the spaces that align tables.
  const slim = (text: string): string =>
    text.replace(/^\|.*$/gm, (row) => row.replace(/ {2,}/g, ' ').replace(/-{4,}/g, '---'));
  const bytes = packed.reduce((sum, page) => sum + Buffer.byteLength(slim(readGuide(page))), 0);
  expect(bytes).toBeLessThanOrEqual(MOST_BYTES_PACKED);
});
