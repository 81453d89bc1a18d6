// What a run of .ci/run does, and why.
import { ROOMS, roomOf, suitesFor } from './rooms.mjs';
import { ALL } from './suites.mjs';

const WIDTH = 150;

/**
 * @typedef {object} Plan
 * @property {readonly string[]} runs the suites that run, beside those that run for each change
 * @property {readonly string[]} leftOut the others
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
    return { runs: ALL, leftOut: [], lines: [`Everything runs: ${reason === undefined || all ? '--all' : reason}.`] };
  }
  const unknown = files.filter((file) => roomOf(file) === undefined);
  const wanted = new Set(files.flatMap(suitesFor));
  const runs = ALL.filter((suite) => wanted.has(suite));
  const leftOut = ALL.filter((suite) => !wanted.has(suite));
  const rooms = [...new Set(files.map(roomOf).filter((room) => room !== undefined))];
  const quiet = rooms.filter((room) => ROOMS[room].length === 0);
  const loud = rooms.filter((room) => ROOMS[room].length > 0);
  const lines = [
    `Since ${base.slice(0, 12)}, of which everything was checked: ${files.length} files have changed.`,
    unknown.length > 0 && line('Without a line in scripts/selection/rooms.mjs, so everything runs', unknown),
    loud.length > 0 && line('Rooms that can break a suite', loud),
    quiet.length > 0 && line('Rooms whose suites run for each change', quiet),
    line('Runs for this change', runs),
    line('Left out, because no changed room can break it', leftOut),
  ];
  return { runs, leftOut, lines: lines.filter(Boolean) };
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
