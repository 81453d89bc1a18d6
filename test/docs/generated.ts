import { generateReference } from '../../tools/reference/reference.mjs';

/** The declarations of lib/, generated once for all tests, because reading the library takes most of their time. */
export const { pages, declarations, gaps } = await generateReference();
