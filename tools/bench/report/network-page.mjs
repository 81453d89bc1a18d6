// docs/operations/benchmarks/network.md, from the results and the notes.
import { measuredOf, overview, section, whenMeasured } from './page.mjs';

const HEAD = `# Benchmarks over a network

<!-- Written by \`npm run bench\` from tools/bench/results/latest.json. Notes belong into tools/bench/notes/. -->

How often an operation waits for Redis, and how fast locks are where Redis is on another machine. Every connection goes through a proxy
that delays what is sent. The packages, their settings and the method are those of the [benchmarks on one machine](../benchmarks.md).

\`\`\`sh
npm run bench -- --scenario network --write-docs      # this page
npm run bench -- --scenario round-trips --write-docs  # the first table alone
\`\`\``;

/**
 * @param {object} results as stored in latest.json
 * @param {readonly object[]} scenarios
 * @param {{ notes: Record<string, string>, charts: Record<string, string> }} extras
 * @returns {string | undefined} Markdown; undefined while nothing was measured
 */
export function networkPage(results, scenarios, { notes, charts }) {
  const measured = measuredOf(results, scenarios);
  if (measured.length === 0) return undefined;
  const parts = [
    HEAD,
    ...(notes['network-intro'] ? [notes['network-intro']] : []),
    whenMeasured(results, measured),
    overview(results, measured),
    ...measured.flatMap((scenario) => section(scenario, results.scenarios[scenario.name], notes, charts)),
  ];
  return `${parts.map((part) => part.trim()).join('\n\n')}\n`;
}
