// Text as `npm run format` leaves it, for what writes files.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'oxfmt';
import { root } from '../scripts/setup.mjs';

const { singleQuote, trailingComma, printWidth } = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8'));

/**
 * @param {string} file its extension selects the language
 * @param {string} text
 * @param {import('oxfmt').FormatConfig} [overrides] of .oxfmtrc.json for this file. Overrides for all Markdown are
 *   known here
 */
export async function formatted(file, text, overrides) {
  const options = { singleQuote, trailingComma, printWidth, proseWrap: 'always', ...overrides };
  const { code, errors } = await format(file, text, options);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  return code;
}
