// Assembles the scripts in lib/redis/lua, and of each feature in lib/features/<feature>/redis/lua.
//
//   -- @include <name>            the code of include/<name>.lua, at its first mention; what it includes comes before it
//   -- @inline <name> word=text   the code of include/<name>.lua at this place, every time, with `text` in place of `word`
//
// The fragment is in the folder of the file that names it, or else in lib/redis/lua.
//
// The comment at the top of a file is its header and is left out. All other lines are sent to Redis as they are written.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';

/**
 * @typedef {{ file: string, number: number, text: string }} Line where a line of a script was written; `file` in lib/
 * @typedef {{ file: string, lines: Line[] }} Piece the code between two includes
 */

/** The folder of the scripts that belong to no feature, in lib/. */
const COMMON = 'redis/lua';

const DIRECTIVE = /^(\s*)-- @(\w+)\s*(\S*)\s*(.*)$/;

/**
 * @param {string} lib the folder lib/
 * @returns {Map<string, Piece[]>} the pieces of each script by the name of its file, without the extension
 * @throws with file and line of a mistake
 */
export function assembleAll(lib) {
  const files = luaFilesIn(lib).filter((file) => !isFragment(file));
  return new Map(files.map((file) => [basename(file, '.lua'), assemble(lib, file)]));
}

/** @param {string} lib @returns {string[]} the scripts and their fragments, by name, each as a path in lib/ */
export function luaFilesIn(lib) {
  const features = join(lib, 'features');
  const folders = existsSync(features) ? readdirSync(features).map((name) => `features/${name}/redis/lua`) : [];
  const all = [COMMON, ...folders]
    .flatMap((folder) => [folder, `${folder}/include`])
    .flatMap((folder) => luaIn(lib, folder));
  const names = all.map((file) => basename(file));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new Error(`two files have the name ${twice}`);
  return names.toSorted().map((name) => all[names.indexOf(name)]);
}

/** @param {string} file a path in lib/ */
export function isFragment(file) {
  return posix.basename(posix.dirname(file)) === 'include';
}

function luaIn(lib, folder) {
  if (!existsSync(join(lib, folder))) return [];
  const files = readdirSync(join(lib, folder)).filter((file) => file.endsWith('.lua'));
  return files.map((file) => `${folder}/${file}`);
}

/** @param {Piece[]} pieces */
export function linesOf(pieces) {
  return pieces.flatMap(({ lines }) => lines);
}

/** @param {Line[]} lines */
export function textOf(lines) {
  return lines.map(({ text }) => text).join('\n');
}

/** Returns the name of a script or an include in code. @param {string} name with hyphens */
export function camelCase(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
}

/** @returns {Piece[]} */
function assemble(lib, script) {
  const included = new Set();
  const add = (file, open) => {
    const pieces = [];
    let lines = [];
    const cut = () => {
      if (lines.some(({ text }) => text.trim() !== '')) pieces.push({ file, lines });
      lines = [];
    };
    for (const line of codeOf(lib, file)) {
      const [directive, indent, verb, name, rest] = DIRECTIVE.exec(line.text) ?? [];
      if (directive === undefined) lines.push(line);
      else if (verb === 'inline') lines.push(...inline(lib, find(lib, name, line), rest, indent, line));
      else if (verb === 'include' && indent === '' && rest === '') {
        cut();
        const next = find(lib, name, line);
        if (open.includes(next)) throw mistake(line, `a cycle: ${[...open, next].join(' includes ')}`);
        if (included.has(next)) continue;
        pieces.push(...add(next, [...open, next]));
        included.add(next);
      } else throw mistake(line, `not understood: ${line.text.trim()}`);
    }
    cut();
    return pieces;
  };
  return add(script, [script]);
}

/** @returns {Line[]} */
function inline(lib, file, rest, indent, from, open = []) {
  if (open.includes(file)) throw mistake(from, `a cycle: ${[...open, file].join(' inlines ')}`);
  const words = rest.split(/\s+/).filter(Boolean);
  let lines = codeOf(lib, file)
    .filter(({ text }) => text.trim() !== '')
    .flatMap((line) => {
      const [directive, within, verb, name, more] = DIRECTIVE.exec(line.text) ?? [];
      if (directive === undefined) return [line];
      if (verb !== 'inline') throw mistake(line, 'an inline fragment contains only code, and other fragments');
      return inline(lib, find(lib, name, line), more, within, line, [...open, file]);
    });
  for (const pair of words) {
    const [, word, value] = /^(\w+)=(\S+)$/.exec(pair) ?? [];
    const pattern = new RegExp(`\\b${word}\\b`, 'g');
    if (!word || !lines.some(({ text }) => text.search(pattern) >= 0)) throw mistake(from, `${pair} replaces nothing`);
    lines = lines.map((line) => ({ ...line, text: line.text.replace(pattern, () => value) }));
  }
  return lines.map((line) => ({ ...line, text: indent + line.text }));
}

/** The lines below the header. */
function codeOf(lib, file) {
  const lines = readFileSync(join(lib, file), 'utf8').split('\n');
  const end = lines.findIndex((text) => !text.startsWith('--') || DIRECTIVE.test(text));
  return lines.map((text, index) => ({ file, number: index + 1, text })).slice(end);
}

function find(lib, name, from) {
  const folder = posix.dirname(isFragment(from.file) ? posix.dirname(from.file) : from.file);
  const found = [folder, COMMON]
    .map((each) => `${each}/include/${name}.lua`)
    .find((file) => existsSync(join(lib, file)));
  if (name === '' || found === undefined) throw mistake(from, `there is no include/${name}.lua`);
  return found;
}

/** @param {Line} line */
function mistake({ file, number }, why) {
  return new Error(`${file}:${number}: ${why}`);
}
