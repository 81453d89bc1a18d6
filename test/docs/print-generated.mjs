// Prints, as JSON, what the declarations of lib/ say, and the pages that are generated from them. A process of its own: inside
// of Jest, the compiler takes twice as long.
import { apiPages } from '../../tools/api/pages.mjs';
import { generateReference } from '../../tools/reference/reference.mjs';

const { pages, declarations, gaps } = await generateReference();
const { options, errors, events } = declarations;
process.stdout.write(JSON.stringify({ pages, gaps, options: [...options], errors, events, api: await apiPages() }));
