/** The file with the Lua scripts. */
export const SCRIPTS = 'redis/script/scripts.generated.js';

/**
 * A deliberately broken variant of the library, which proves that a checker sees what it is there for.
 *
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} what what it does wrong, in a sentence
 * @property {string} file which file of dist/modules, such as 'redis/inbox.js'
 * @property {string} find stands in that file exactly once, or exactly `times` times
 * @property {number} [times]
 * @property {string} replace what stands there in the mutant
 * @property {{ find: string, replace: string }} [and] a second change in that file, where both places keep the same rule: with one of them
 *   no harm is done
 */

/**
 * @param {string} source the text of the mutant's file
 * @param {Omit<Mutant, 'what'>} mutant
 * @returns {string} the text of the broken variant
 * @throws where the mutant would not be what its author meant, because the file has changed since
 */
export function mutate(source, { name, file, find, times = 1, replace, and }) {
  const matches = find === '' ? 0 : source.split(find).length - 1;
  if (matches !== times) {
    throw new Error(`mutant ${name}: its text stands ${matches} times in ${file}, not ${times}: ${find}`);
  }
  if (find === replace) throw new Error(`mutant ${name}: it replaces a text with itself`);
  // Not as a pattern: "$&" in a replacement is only text.
  const text = source.replaceAll(find, () => replace);
  return and ? mutate(text, { name, file, ...and }) : text;
}
