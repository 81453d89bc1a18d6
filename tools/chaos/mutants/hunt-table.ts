import type { HuntResult } from './hunt.js';

/** A line for each mutant and for each world without any: who caught it, and after what time. */
export function huntTable(results: readonly HuntResult[]): string {
  const lines = results.map(({ mutant, scenario, caughtBy, afterMs, holds }) => {
    const found = caughtBy.join(', ') || (mutant === null ? 'nothing, as it should be' : 'NOBODY');
    return [mutant ?? `none (${scenario})`, found, `${afterMs} ms`, String(holds)];
  });
  const rows = [['mutant', 'caught by', 'after', 'holds'], ...lines];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join(' | ')
        .trimEnd(),
    )
    .join('\n');
}
