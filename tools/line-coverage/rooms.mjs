// The lines of lib/ that tests execute, by room: a folder without the folders in it.
import { dirname, relative } from 'node:path';

/**
 * @typedef {object} Room
 * @property {string} room
 * @property {number} lines that can be executed
 * @property {number} covered those that were
 */

/**
 * @param {Record<string, { lines: { total: number, covered: number } }>} summary `coverage-summary.json` of Jest
 * @param {string} root
 * @returns {Room[]} in the order of the alphabet; the last one is all of them
 */
export function coverageByRoom({ total, ...files }, root) {
  const rooms = new Map();
  for (const [path, { lines }] of Object.entries(files)) {
    const room = dirname(relative(root, path));
    const sum = rooms.get(room) ?? { room, lines: 0, covered: 0 };
    rooms.set(room, { room, lines: sum.lines + lines.total, covered: sum.covered + lines.covered });
  }
  const inOrder = [...rooms.values()].toSorted((a, b) => (a.room < b.room ? -1 : 1));
  return [...inOrder, { room: 'all', lines: total.lines.total, covered: total.lines.covered }];
}

const percent = ({ lines, covered }) => (lines === 0 ? 100 : (100 * covered) / lines);

/**
 * A line for each room. With numbers of before, what they were, where they differ.
 *
 * @param {readonly Room[]} rooms
 * @param {readonly Room[]} [before]
 */
export function coverageTable(rooms, before = []) {
  return rooms
    .map((room) => {
      const was = before.find((one) => one.room === room.room);
      const now = percent(room).toFixed(1);
      const differs = was !== undefined && percent(was).toFixed(1) !== now;
      const columns = [room.room.padEnd(32), `${room.covered} of ${room.lines}`.padStart(16), `${now} %`.padStart(8)];
      return [...columns, ...(differs ? [`was ${percent(was).toFixed(1)} %`] : [])].join('  ');
    })
    .join('\n');
}

/**
 * The rooms that tests execute less of than before: more lines are missed, and a smaller share is met. A room that has gone, or lost
 * lines, is not lower for that.
 *
 * @param {readonly Room[]} rooms
 * @param {readonly Room[]} before
 * @returns {string[]}
 */
export function lowerRooms(rooms, before) {
  return rooms
    .filter((room) => {
      const was = before.find((one) => one.room === room.room);
      const isMissed = ({ lines, covered }) => lines - covered;
      return was !== undefined && percent(room) < percent(was) && isMissed(room) > isMissed(was);
    })
    .map(({ room }) => room);
}
