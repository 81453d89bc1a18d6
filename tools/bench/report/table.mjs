import { verdict } from './format.mjs';
import { remarks, resultRows, targetCells } from './rows.mjs';

/** @returns {string} columns of equal width, the first to the left, numbers to the right */
export function alignColumns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

/** What the terminal shows of a scenario. */
export function scenarioReport(scenario, result) {
  const title = `${scenario.name}: ${scenario.title}`;
  if (result.skipped) return `${title}\n  skipped: ${result.skipped}\n`;
  const { header, rows } = resultRows(scenario, result);
  const targets = result.targets.map((target) => {
    const mark = { met: 'PASS', missed: 'missed', 'not measured': '-' }[verdict(target)];
    return [`  ${mark}`, ...targetCells(target)];
  });
  return [
    title,
    indent(alignColumns([header, ...rows.map(({ cells }) => cells)])),
    ...(targets.length > 0 ? [alignColumns(targets)] : []),
    ...remarks(result).map((remark) => `  ${remark}`),
    '',
  ].join('\n');
}

function indent(text) {
  return text.replace(/^/gm, '  ');
}
