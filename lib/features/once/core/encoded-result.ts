/** The first character of a stored result shows what follows: a text, or nothing. */
const TEXT = '=';
const UNDEFINED = '-';

/** @param text `undefined` for the result `undefined`, which JSON does not have */
export function encodeResult(text: string | undefined): string {
  return text === undefined ? UNDEFINED : TEXT + text;
}

/**
 * Returns the result of an encoded text.
 *
 * @throws Error, or what `parse` throws, for a text that this library did not write, or with other functions
 */
export function decodeResult(encoded: string, parse: (text: string) => unknown): unknown {
  if (encoded === UNDEFINED) return undefined;
  if (!encoded.startsWith(TEXT)) throw new Error('it was written by another program');
  return parse(encoded.slice(TEXT.length));
}
