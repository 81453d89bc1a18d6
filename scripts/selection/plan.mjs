// What a run of .ci/run does, and why.
import { inWords, readTimings } from '../timings/kept.mjs';
import { mutantsFor, ROOMS, roomOf, suitesFor } from './rooms.mjs';
import { ALL, suiteOf } from './suites.mjs';

const WIDTH = 150;

/**
 * @typedef {object} Plan
 * @property {readonly string[]} runs the suites that run, beside those that run for each change
 * @property {readonly string[]} leftOut the others
 * @property {readonly string[] | undefined} mutants the names of those that are tried; all, where it is `undefined`
 * @property {readonly string[]} lines that say so, ten at most
 */

/**
 * @param {import('./base.mjs').Changes} changes
 * @param {object} [options]
 * @param {boolean} [options.all] everything, whatever has changed
 * @returns {Plan}
 */
export function planFor({ base, reason, files }, { all = false } = {}) {
  if (all || reason !== undefined) {
    const why = reason === undefined || all ? '--all' : reason;
    return { runs: ALL, leftOut: [], mutants: undefined, lines: [`Everything runs: ${why}.`, timeOf(ALL)] };
  }
  const unknown = files.filter((file) => roomOf(file) === undefined);
  const wanted = new Set(files.flatMap(suitesFor));
  const runs = ALL.filter((suite) => wanted.has(suite));
  const leftOut = ALL.filter((suite) => !wanted.has(suite));
  const mutants = mutantsFor(files);
  const rooms = [...new Set(files.map(roomOf).filter((room) => room !== undefined))];
  const quiet = rooms.filter((room) => ROOMS[room].length === 0);
  const loud = rooms.filter((room) => ROOMS[room].length > 0);
  const lines = [
    `Since ${base.slice(0, 12)}, of which everything was checked: ${count(files)} changed.`,
    unknown.length > 0 && line('Without a line in scripts/selection/rooms.mjs, so everything runs', unknown),
    loud.length > 0 && line('Rooms that can break a suite', loud),
    quiet.length > 0 && line('Rooms whose suites run for each change', quiet),
    line('Runs for this change', withTimes(runs)),
    mutants !== undefined && mutants.length > 0 && line('Mutants that are tried', mutants),
    line('Left out, because no changed room can break it', leftOut),
    timeOf(runs),
  ];
  return { runs, leftOut, mutants, lines: lines.filter(Boolean) };
}

function count({ length }) {
  return length === 1 ? '1 file has' : `${length} files have`;
}

/** As many as fit into a line. */
function line(title, names) {
  const shown = [];
  let length = title.length;
  for (const name of names) {
    length += name.length + 2;
    if (length > WIDTH) break;
    shown.push(name);
  }
  const rest = names.length - shown.length;
  const last = rest > 0 ? [`${rest} more`] : [];
  return `${title}: ${[...shown, ...last].join(', ') || 'nothing'}.`;
}

/** How long the test files of each suite took when they were last measured. Those of `undefined` run for each change. */
const SECONDS = new Map();
for (const [file, seconds] of Object.entries(readTimings().files)) {
  const suite = suiteOf(file);
  SECONDS.set(suite, (SECONDS.get(suite) ?? 0) + seconds);
}

const secondsOf = (suites) => suites.reduce((sum, suite) => sum + (SECONDS.get(suite) ?? 0), 0);

/** Those that take long come first. */
function withTimes(suites) {
  const sorted = suites.toSorted((one, other) => secondsOf([other]) - secondsOf([one]));
  return sorted.map((suite) => (SECONDS.has(suite) ? `${suite} (${Math.ceil(secondsOf([suite]))} s)` : suite));
}

/** Tests run several at a time, so a run takes less. */
function timeOf(suites) {
  const [these, always] = [secondsOf(suites), secondsOf([undefined])].map(inWords);
  return `When they were last measured, these tests took ${these}, one after another, and those of each change ${always}.`;
}
