// The entry points for users, from `exports` of package.json, which is the only list.
import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/**
 * @typedef {object} EntryPoint
 * @property {string} subpath such as `./schedule`
 * @property {string} specifier what is written to import it, such as `nestjs-redis-lock/schedule`
 * @property {string} name of its files, such as `schedule`
 * @property {string} source the file of the project that it is built from
 */

/** @type {readonly EntryPoint[]} */
export const ENTRY_POINTS = Object.keys(manifest.exports)
  .filter((subpath) => !subpath.endsWith('.json'))
  .map((subpath) => {
    const name = subpath === '.' ? 'index' : subpath.slice(2);
    return { subpath, specifier: manifest.name + subpath.slice(1), name, source: `lib/${name}.ts` };
  });
