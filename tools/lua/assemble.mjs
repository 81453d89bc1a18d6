// Assembles the scripts in lib/redis/lua.
//
//   -- @include <name>            the code of include/<name>.lua, at its first mention; what it includes comes before it
//   -- @inline <name> word=text   the code of include/<name>.lua at this place, every time, with `text` in place of `word`
//
// The comment at the top of a file is its header and is left out. All other lines are sent to Redis as they are written.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * @typedef {{ file: string, number: number, text: string }} Line where a line of a script was written
 * @typedef {{ file: string, lines: Line[] }} Piece the code between two includes
 */

const DIRECTIVE = /^(\s*)-- @(\w+)\s*(\S*)\s*(.*)$/;

/**
 * @param {string} folder with the scripts, and their includes in `include/`
 * @returns {Map<string, Piece[]>} the pieces of each script by the name of its file, without the extension
 * @throws with file and line of a mistake
 */
export function assembleAll(folder) {
  const scripts = readdirSync(folder).filter((file) => file.endsWith('.lua'));
  return new Map(scripts.sort().map((file) => [basename(file, '.lua'), assemble(folder, file)]));
}

/** @param {Piece[]} pieces */
export function linesOf(pieces) {
  return pieces.flatMap(({ lines }) => lines);
}

/** @param {Line[]} lines */
export function textOf(lines) {
  return lines.map(({ text }) => text).join('\n');
}

/** What a script or an include is called in code. @param {string} name with hyphens */
export function camelCase(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
}

/** @returns {Piece[]} */
function assemble(folder, script) {
  const included = new Set();
  const add = (file, open) => {
    const pieces = [];
    let lines = [];
    const cut = () => {
      if (lines.some(({ text }) => text.trim() !== '')) pieces.push({ file, lines });
      lines = [];
    };
    for (const line of codeOf(folder, file)) {
      const [directive, indent, verb, name, rest] = DIRECTIVE.exec(line.text) ?? [];
      if (directive === undefined) lines.push(line);
      else if (verb === 'inline') lines.push(...inline(folder, find(folder, name, line), rest, indent, line));
      else if (verb === 'include' && indent === '' && rest === '') {
        cut();
        const next = find(folder, name, line);
        if (open.includes(next)) throw mistake(line, `a circle: ${[...open, next].join(' includes ')}`);
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
function inline(folder, file, rest, indent, from, open = []) {
  if (open.includes(file)) throw mistake(from, `a circle: ${[...open, file].join(' inlines ')}`);
  const words = rest.split(/\s+/).filter(Boolean);
  let lines = codeOf(folder, file)
    .filter(({ text }) => text.trim() !== '')
    .flatMap((line) => {
      const [directive, within, verb, name, more] = DIRECTIVE.exec(line.text) ?? [];
      if (directive === undefined) return [line];
      if (verb !== 'inline') throw mistake(line, 'an inline fragment contains only code, and other fragments');
      return inline(folder, find(folder, name, line), more, within, line, [...open, file]);
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
function codeOf(folder, file) {
  const lines = readFileSync(join(folder, file), 'utf8').split('\n');
  const end = lines.findIndex((text) => !text.startsWith('--') || DIRECTIVE.test(text));
  return lines.map((text, index) => ({ file, number: index + 1, text })).slice(end);
}

function find(folder, name, from) {
  const file = `include/${name}.lua`;
  if (name === '' || !existsSync(join(folder, file))) throw mistake(from, `there is no ${file}`);
  return file;
}

/** @param {Line} line */
function mistake({ file, number }, why) {
  return new Error(`${file}:${number}: ${why}`);
}
