// Prints a scenario to the terminal.
import { contestant, CONTESTANTS } from '../contestants/index.mjs';
import { formatNumber, formatSpread } from './format.mjs';

/** @returns {string} columns of equal width, the first to the left, numbers to the right */
export function alignColumns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

export function scenarioReport(scenario, result) {
  const title = `${scenario.name}: ${scenario.title}\n  ${scenario.how}`;
  if (result.skipped) return `${title}\n  skipped: ${result.skipped}\n`;
  const lines = [...remarks(result), ...settings(result)];
  return [
    title,
    alignColumns(resultRows(scenario, result)).replace(/^/gm, '  '),
    ...(result.targets.length > 0 ? [alignColumns(result.targets.map(targetCells))] : []),
    ...lines.map((line) => `  ${line}`),
    '',
  ].join('\n');
}

function resultRows({ metrics }, { summary }) {
  const known = CONTESTANTS.map(({ name }) => name).filter((name) => name in summary);
  const names = new Set([...known, ...Object.keys(summary)]);
  const cell = (result, { id, digits }, index) => {
    if (result[id] === undefined) return index === 0 && result.failed ? 'failed' : '-';
    return formatSpread(result[id], digits);
  };
  return [
    ['', ...metrics.map(({ label }) => label)],
    ...[...names].map((name) => [labelOf(name), ...metrics.map((metric, index) => cell(summary[name], metric, index))]),
  ];
}

/** Series of ours, such as `using()`, are named as they are. */
function labelOf(name) {
  return contestant(name)?.label ?? name;
}

/** Explains failures in words. */
function remarks({ summary }) {
  return Object.entries(summary).flatMap(([name, { failed, failedRounds, stuck }]) => [
    ...(failed ? [`${labelOf(name)} failed in ${count(failedRounds, 'round')}: ${failed}`] : []),
    ...(stuck
      ? [
          `${labelOf(name)}: up to ${count(stuck, 'caller')} of a round still had no lease 2 s after everyone else had stopped.`,
        ]
      : []),
  ]);
}

/** Returns the chosen settings of a contestant. */
function settings({ settings: chosen = {}, tried }) {
  return Object.entries(chosen)
    .filter(([name]) => tried[name].length > 1)
    .map(([name, tuning]) => `${labelOf(name)}: ${JSON.stringify(tuning)} had the most leases/s`);
}

function count(number, noun) {
  return `${formatNumber(number, 0)} ${noun}${number === 1 ? '' : 's'}`;
}

function targetCells({ text, limit, unit, median, min, max, passed }) {
  if (passed === null) return ['  -', text, '-', limit + unit];
  const written = (number) => `${formatNumber(number, Math.abs(number) >= 100 ? 0 : 2)}${unit}`;
  const [middle, low, high] = [median, min, max].map(written);
  return [passed ? '  PASS' : '  missed', text, low === high ? middle : `${middle} (${low}–${high})`, limit + unit];
}
