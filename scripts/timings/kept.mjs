// How long the commands and the test files took, when they were last measured: test/timings.json. `npm run timings` writes it.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../../test/timings.json', import.meta.url));
/** A command that takes this many times as long as it did is worth a word. */
const MUCH_LONGER = 1.5;

/**
 * @typedef {object} Timings
 * @property {number} cores of the machine that measured
 * @property {Record<string, number[]>} commands seconds of each run, by what is typed
 * @property {Record<string, number>} files median of the seconds in which the tests of a file ran, by its path
 */

/** @returns {Timings} */
export function readTimings() {
  return JSON.parse(readFileSync(FILE, 'utf8'));
}

/** @param {Timings} timings */
export function writeTimings({ cores, commands, files }) {
  const sorted = Object.fromEntries(Object.entries(files).sort(([one], [other]) => (one < other ? -1 : 1)));
  writeFileSync(FILE, `${JSON.stringify({ cores, commands, files: sorted }, undefined, 2)}\n`);
}

/** @param {readonly number[]} values one or more */
export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle - 1)] + sorted[Math.floor(middle)]) / 2;
}

/**
 * Says so when a whole command took much longer than it did when it was measured. It is no failure: the machine may be busy.
 *
 * @param {string} command as in the table of CONTRIBUTING.md
 * @param {number} seconds
 * @param {{ timings?: Timings, cores?: number }} [of]
 * @returns {string | undefined}
 */
export function slowerThanKept(command, seconds, { timings = readTimings(), cores = cpus().length } = {}) {
  const runs = timings.commands[command];
  if (runs === undefined || cores < timings.cores || seconds <= MUCH_LONGER * median(runs)) return undefined;
  return (
    `${command} took ${inWords(seconds)}, and ${inWords(median(runs))} when it was measured on ${timings.cores} cores.\n` +
    'If nothing else keeps this machine busy: find out what became slow, or measure again with `npm run timings`.'
  );
}

/** @param {number} seconds */
export function inWords(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return whole % 60 === 0 ? `${whole / 60} min` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

const ROW = /^\| `([^`]+)` .*\|$/;

/**
 * The table of commands, with what was measured in its last column.
 *
 * @param {string} page CONTRIBUTING.md
 * @param {Timings} timings
 */
export function withMeasured(page, { commands }) {
  return page
    .split('\n')
    .map((line) => {
      const runs = commands[ROW.exec(line)?.[1] ?? ''];
      if (runs === undefined) return line;
      const cells = line.split('|');
      const { length } = cells.at(-2);
      return [...cells.slice(0, -2), ` ${inWords(median(runs))}`.padEnd(length), ''].join('|');
    })
    .join('\n');
}
