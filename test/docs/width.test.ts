import { blocksOf, GUIDES, readGuide } from './guides.js';

/** What a page of the site shows of a line at a width of 1,280 pixels. */
const COLUMNS = 76;
/** Commands are wrapped there. What a terminal prints is as wide as it is. */
const LANGUAGES = ['ts', 'js', 'json', 'yaml'];
it.each(GUIDES)('%s has no code that is cut off', (page) => {
  const wide = blocksOf(page)
    .filter(({ language }) => LANGUAGES.includes(language))
    .flatMap(({ code }) => code.split('\n'))
    // The output that a line promises stands in that line, where a test looks for it. The line itself is not longer.
    .map((line) => line.replace(/(console\.log\(.*\);) \/\/ .*/, '$1'))
    .filter((line) => line.length > COLUMNS && !/ from '| A stock\./.test(line));
  expect(wide).toEqual([]);
});

it.each(GUIDES.filter((page) => page !== 'CONTRIBUTING.md'))('%s has no table that is padded with spaces', (page) => {
  const rows = readGuide(page)
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  // One that is aligned is left alone by a comment before it: nobody reads the source of such a table.
  expect(rows.filter((row) => / {3,}\||-{6,}/.test(row))).toEqual([]);
});
