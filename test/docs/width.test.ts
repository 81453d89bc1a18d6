import { blocksOf, GUIDES, readGuide } from './guides.js';

/** The columns of a line that the site shows at a width of 1,280 pixels. */
const COLUMNS = 76;
/** Commands are wrapped there. What a terminal prints is as wide as it is. */
const LANGUAGES = ['ts', 'js', 'json', 'yaml'];
it.each(GUIDES)('%s has no code that is cut off', (page) => {
  const wide = blocksOf(page)
    .filter(({ language }) => LANGUAGES.includes(language))
    .flatMap(({ code }) => code.split('\n'))
    // Ignores the promised output, which a test needs in the same line.
    .map((line) => line.replace(/(console\.log\(.*\);) \/\/ .*/, '$1'))
    .filter((line) => line.length > COLUMNS && !/ from '| A stock\./.test(line));
  expect(wide).toEqual([]);
});

it.each(GUIDES.filter((page) => page !== 'CONTRIBUTING.md'))('%s has no table that is padded with spaces', (page) => {
  const rows = readGuide(page)
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  // A comment before it keeps a table from being aligned: nobody reads the source of such a table.
  expect(rows.filter((row) => / {3,}\||-{6,}/.test(row))).toEqual([]);
});
