// The rows of a scenario's table, for the terminal and the page alike.
import { contestant, CONTESTANTS, OURS } from '../contestants/index.mjs';
import { formatNumber, formatRatio, formatSpread } from './format.mjs';

/** @returns {{ header: string[], rows: { name: string, cells: string[] }[] }} */
export function resultRows(scenario, { summary }) {
  const header = ['', ...scenario.metrics.map(({ label }) => label)];
  const known = CONTESTANTS.map(({ name }) => name);
  const names = [
    ...known.filter((name) => name in summary),
    ...Object.keys(summary).filter((name) => !known.includes(name)),
  ];
  return { header, rows: names.map((name) => ({ name, cells: [labelOf(name), ...cellsOf(scenario, summary[name])] })) };
}

/** Series of ours, such as `using()`, are named as they are. */
export function labelOf(name) {
  return contestant(name)?.label ?? name;
}

export function isOurs(name) {
  return name === OURS;
}

function cellsOf(scenario, result) {
  return scenario.metrics.map(({ id, digits }, index) => {
    if (result[id] === undefined) return index === 0 && result.failed ? 'failed' : '-';
    return formatSpread(result[id], digits);
  });
}

/** What a reader has to know of failures, in words. */
export function remarks({ summary }) {
  return Object.entries(summary).flatMap(([name, { failed, failedRounds, stuck }]) => [
    ...(failed ? [`${labelOf(name)} failed in ${count(failedRounds, 'round')}: ${failed}`] : []),
    ...(stuck
      ? [
          `${labelOf(name)}: up to ${count(stuck, 'caller')} of a round still had no lease 2 s after everyone else had stopped.`,
        ]
      : []),
  ]);
}

function count(number, noun) {
  return `${formatNumber(number, 0)} ${noun}${number === 1 ? '' : 's'}`;
}

/** @returns {string[]} text, result with spread, limit */
export function targetCells({ text, limit, unit, median, min, max, passed }) {
  if (passed === null) return [text, '-', limit + unit];
  const [low, high] = [formatRatio(min, unit), formatRatio(max, unit)];
  return [text, formatRatio(median, unit) + (low === high ? '' : ` (${low}–${high})`), limit + unit];
}
