// Compares what lib/ has with what it may have.
import { byName } from './measure.mjs';

/** Budgets of lines are multiples of this. */
const STEP = 50;
/** A budget that is further above the room than this is lowered, so that nothing grows back unseen. */
const MOST_UNUSED = 2 * STEP;

/**
 * @typedef {{ rooms: Record<string, [files: number, lines: number]>, jobTypes: string[] }} Budgets
 *
 * @param {import('./measure.mjs').Measured} measured
 * @param {Budgets} budgets
 * @returns {string[]} what is wrong, and what to write where that is meant
 */
export function findings({ rooms, jobTypes, doubles }, budgets) {
  return [
    ...Object.entries(rooms).flatMap(([room, [files, lines]]) => {
      const budget = budgets.rooms[room];
      const line = `"${room}": [${files}, ${budgetOf(lines)}]`;
      const at = room === '.' ? 'lib' : `lib/${room}`;
      if (!budget) return [`${at} has no budget. Add ${line}.`];
      if (files > budget[0]) return [`${at} has ${files} files; its budget is ${budget[0]}. If it must grow: ${line}.`];
      if (lines > budget[1]) return [`${at} has ${lines} lines; its budget is ${budget[1]}. If it must grow: ${line}.`];
      if (files < budget[0] || budget[1] - lines > MOST_UNUSED) return [`${at} has shrunk. Lower its budget: ${line}.`];
      return [];
    }),
    ...Object.keys(budgets.rooms)
      .filter((room) => !rooms[room])
      .map((room) => `lib/${room} has no files any more. Remove its budget.`),
    ...jobTypes
      .filter((name) => !budgets.jobTypes.includes(name))
      .map((name) => `${name} is one more type of a job. Use one that is there, or add it to "jobTypes".`),
    ...budgets.jobTypes
      .filter((name) => !jobTypes.includes(name))
      .map((name) => `${name} is no exported type any more. Remove it from "jobTypes".`),
    ...doubles.map((double) => `${double}. Rename one of them, or make them one.`),
  ];
}

/**
 * The budgets that fit what is there.
 *
 * @param {import('./measure.mjs').Measured} measured
 * @returns {Budgets}
 */
export function fitted({ rooms, jobTypes }) {
  const sorted = Object.keys(rooms).sort(byName);
  return {
    rooms: Object.fromEntries(sorted.map((room) => [room, [rooms[room][0], budgetOf(rooms[room][1])]])),
    jobTypes,
  };
}

/** @param {number} lines */
function budgetOf(lines) {
  return Math.ceil(lines / STEP) * STEP;
}
