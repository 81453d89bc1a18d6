// Of the files with code: which the rules that need types look at.
import { dirname, join } from 'node:path';

/**
 * What is new or changed since the rules last passed, and the files that import it by name: everything, where the rules themselves
 * have changed, or nothing is kept.
 *
 * @typedef {{ readonly rules: string, readonly files: Readonly<Record<string, string>> }} Contents the hash of each file
 * @param {Contents | undefined} kept what passed
 * @param {Contents} now
 * @param {(file: string) => string} read its text
 * @returns {string[]}
 */
export function newFiles(kept, now, read) {
  const all = Object.keys(now.files);
  if (kept?.rules !== now.rules) return all;
  const changed = new Set(all.filter((file) => kept.files[file] !== now.files[file]));
  if (changed.size === 0) return [];
  return all.filter((file) => changed.has(file) || importsOf(file, read(file)).some((each) => changed.has(each)));
}

/** The files that a file names by a relative path. TypeScript is imported by the name that it has when it is compiled. */
function importsOf(file, text) {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    join(dirname(file), path).replace(/\.js$/, '.ts'),
  );
}
