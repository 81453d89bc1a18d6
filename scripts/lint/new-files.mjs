// Which files a check looks at that has passed others before.
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
  const changed = new Set(changedFiles(kept, now));
  if (changed.size === 0 || changed.size === all.length) return [...changed];
  return all.filter((file) => changed.has(file) || importsOf(file, read(file)).some((each) => changed.has(each)));
}

function changedFiles(kept, now) {
  const all = Object.keys(now.files);
  return kept?.rules === now.rules ? all.filter((file) => kept.files[file] !== now.files[file]) : all;
}

/** The files that a file names by a relative path. TypeScript is imported by the name that it has when it is compiled. */
function importsOf(file, text) {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    join(dirname(file), path).replace(/\.js$/, '.ts'),
  );
}
