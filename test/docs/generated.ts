import { generateReference } from '../../tools/reference/reference.mjs';

/** What the declarations of lib/ say, once for all tests that ask: to read and check the library takes most of their time. */
export const { pages, declarations, gaps } = await generateReference();
