import { blocksOf, GUIDES } from './guides.js';

/** What a page of the site shows of a line at a width of 1,280 pixels. */
const COLUMNS = 76;
/** Commands are wrapped there. What a terminal prints is as wide as it is. */
const LANGUAGES = ['ts', 'js', 'json', 'yaml'];
/** Their code is that of the stacks of databases, which has a width of its own. */
const WIDER =
  /(?:fencing|fencing-drivers|with-(?:transactions|typeorm|mikro-orm|prisma|nestjs-cls-transactional))\.md$/;

it.each(GUIDES.filter((page) => !WIDER.test(page)))('%s has no code that is cut off', (page) => {
  const wide = blocksOf(page)
    .filter(({ language }) => LANGUAGES.includes(language))
    .flatMap(({ code }) => code.split('\n'))
    // The output that a line promises stands in that line, where a test looks for it. The line itself is not longer.
    .map((line) => line.replace(/(console\.log\(.*\);) \/\/ .*/, '$1'))
    .filter((line) => line.length > COLUMNS);
  expect(wide).toEqual([]);
});
