import { publishedPage } from '../../tools/package/pages.mjs';
import { publishedPaths } from '../../tools/package/stage.mjs';
import { GUIDES, readGuide } from './guides.js';

/** A page more, or a word more, has to be worth it: shorten or join others first. */
const MOST_PAGES = 60;
const MOST_WORDS = 55_000;
const MOST_BYTES_PACKED = 450 * 1024;

/** What people write: the whole page, with its code and tables. The tables of docs/reference are generated. */
const pages = GUIDES.filter((path) => path.startsWith('docs/') && !path.startsWith('docs/reference/'));

/** A text between spaces that has a letter or a digit: no bar of a table, no dash, no brace of code. */
function countWords(text: string): number {
  return text.split(/\s+/).filter((part) => /[\p{L}\p{N}]/u.test(part)).length;
}

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
  const published = publishedPaths();
  const packed = GUIDES.filter((path) => path.startsWith('docs/') && published.has(path));
  const bytes = packed.reduce((sum, page) => {
    return sum + Buffer.byteLength(publishedPage(readGuide(page), { page, published, version: '1.2.3' }));
  }, 0);
  expect(bytes).toBeLessThanOrEqual(MOST_BYTES_PACKED);
});
