// Maps the findings of luacheck about assembled scripts to their source files.
import { basename } from 'node:path';
import { linesOf } from './assemble.mjs';

/** "path/to/renew.lua:16:36: (W431) shadowing upvalue 'text' on line 3" */
const FINDING = /^(.+):(\d+):(\d+): \(([WE])(\d)(\d+)\) (.*)$/;
/** Warnings about what is not used. */
const UNUSED = '2';

/**
 * Each finding once, however many scripts it is in. A fragment may hold what one of its scripts does not use, so a warning
 * about that counts where all of them have it.
 *
 * @param {string} output of `luacheck --formatter plain --codes`
 * @param {Map<string, import('./assemble.mjs').Piece[]>} scripts
 * @returns {string[]} "include/queue.lua:12:9: (W113) accessing undefined variable 'x'"
 */
export function findingsOf(output, scripts) {
  /** @type {Map<string, { file: string, isUnused: boolean, scripts: Set<string> }>} */
  const findings = new Map();
  for (const line of output.split('\n')) {
    if (line.trim() === '') continue;
    const [, path, row, column, level, group, code, text] = FINDING.exec(line) ?? [];
    if (path === undefined) throw new Error(`luacheck says what is not understood: ${line}`);
    const script = basename(path, '.lua');
    const lines = linesOf(scripts.get(script));
    // Anything missing at the end belongs below the last line.
    const origin = lines[Number(row) - 1] ?? lines.at(-1);
    // The line of another place is one of the assembled script.
    const message = text.replace(/ on line \d+/, '');
    const key = `${origin.file}:${origin.number}:${column}: (${level}${group}${code}) ${message}`;
    const isUnused = level === 'W' && group === UNUSED;
    const known = findings.get(key) ?? { file: origin.file, isUnused, scripts: new Set() };
    findings.set(key, known);
    known.scripts.add(script);
  }
  const users = (file) => [...scripts.values()].filter((pieces) => linesOf(pieces).some((line) => line.file === file));
  return [...findings]
    .filter(([, { file, isUnused, scripts: found }]) => !isUnused || found.size === users(file).length)
    .map(([finding]) => finding);
}
