// @ts-check
// Prints the demo. Readable without colour too.
import { styleText } from 'node:util';

const inColour = process.env.FORCE_COLOR
  ? process.env.FORCE_COLOR !== '0'
  : Boolean(process.stdout.isTTY) && !process.env.NO_COLOR;

/** @param {Parameters<typeof styleText>[0]} style @param {string} text */
function paint(style, text) {
  return inColour ? styleText(style, text) : text;
}

export function heading(/** @type {string} */ text) {
  console.log(`\n${paint('bold', text)}`);
}

export function say(/** @type {string} */ text) {
  console.log(`  ${text}`);
}

export function seconds(/** @type {number} */ ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/**
 * One line of the table. `isKept: undefined`: nothing was promised.
 *
 * @typedef {{ what: string, measured: string, promised: string, isKept?: boolean }} Finding
 */

/** @param {Finding[]} findings */
export function table(findings) {
  const rows = [['', 'measured', 'promised', ''], ...findings.map(cells)];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (/** @type {string[]} */ row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd();
  const [header = [], ...body] = rows;
  console.log(`\n  ${paint('bold', line(header))}`);
  console.log(`  ${'-'.repeat(widths.reduce((sum, width) => sum + width + 3, 0) + 6)}`);
  for (const [index, row] of body.entries()) console.log(`  ${colour(line(row), findings[index])}`);
}

/** @param {Finding} finding */
function cells({ what, measured, promised, isKept }) {
  return [what, measured, promised, isKept === undefined ? '' : isKept ? 'ok' : 'BROKEN'];
}

/** @param {string} text @param {Finding | undefined} finding */
function colour(text, finding) {
  if (finding?.isKept === undefined) return paint('yellow', text);
  return paint(finding.isKept ? 'green' : 'red', text);
}
