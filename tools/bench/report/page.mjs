// docs/operations/benchmarks.md, from the results and the notes.
import { CONTESTANTS } from '../contestants/index.mjs';
import { verdict } from './format.mjs';
import { markdownTable } from './markdown.mjs';
import { isOurs, labelOf, remarks, resultRows, targetCells } from './rows.mjs';
import { standing } from './standing.mjs';

const HEAD = `# Benchmarks

<!-- Written by \`npm run bench\` from tools/bench/results/latest.json. Notes belong into tools/bench/notes/. -->

How fast locks are, beside a bare round trip, beside a lock written by hand, and beside other packages for Node.
[Over a network](benchmarks/network.md) the round trips of every operation are counted, and the same is measured again. Run it on your own
machine. Only the comparison within one run means something:

\`\`\`sh
npm run bench                                    # everything: about 32 minutes, on a quiet machine
npm run bench -- --quick                         # a smoke run
npm run bench -- --scenario handover --rounds 9  # one of them
\`\`\`

It installs the other packages into \`tools/bench/node_modules\`, starts a Redis of its own without persistence, and stops it again.`;

const METHOD = `## How it is measured

- All contestants are measured within each round, one after another, and they take turns at being first. Numbers are medians over the
  rounds, with the smallest and the largest in parentheses. A ratio is taken within a round, where all had the same machine; the median of
  those is shown.
- Each contestant works in processes of its own, which are warm when a round begins. All use the same version of ioredis and the same Redis.
- Redis runs on the same machine, so a round trip is as short as it gets. [Over a network](benchmarks/network.md) a contestant with more
  round trips falls behind further, and the processor time of a client matters less.
- Some settings are a choice between speed and load, such as the pause between two attempts. Several are tried before the rounds of a
  contended scenario, and the one with most leases per second is used.
- Exclusion is checked: sections are stamped by the monotonic clock that all processes of a machine share, and no two may overlap. A
  contestant that breaks it, fails, or does not answer in time is reported as failed.`;

/**
 * @param {object} results as stored in latest.json
 * @param {readonly object[]} scenarios
 * @param {{ notes: Record<string, string>, charts: Record<string, string> }} extras
 *   hand-written text, and the path of the chart from the page, for each scenario
 * @returns {string} Markdown
 */
export function benchmarkPage(results, scenarios, { notes, charts }) {
  const measured = measuredOf(results, scenarios);
  const parts = [
    HEAD,
    ...(notes.intro ? [notes.intro] : []),
    overview(results, measured),
    whenMeasured(results, measured),
    METHOD,
    setup(),
    ...measured.flatMap((scenario) => section(scenario, results.scenarios[scenario.name], notes, charts)),
  ];
  return `${parts.map((part) => part.trim()).join('\n\n')}\n`;
}

/** The scenarios of which there are results. */
export function measuredOf(results, scenarios) {
  return scenarios.filter(({ name }) => name in results.scenarios);
}

export function overview({ scenarios: results }, scenarios) {
  const rows = scenarios.flatMap(({ name, title, targets }) =>
    targets.length === 0 || results[name].skipped
      ? []
      : results[name].targets.map((target, index) => [
          index === 0 ? `[${title}](#${anchor(title)})` : '',
          ...targetCells(target),
          verdict(target),
        ]),
  );
  return `## Targets\n\n${markdownTable([['Scenario', 'Target', 'Result', 'Limit', ''], ...rows], 2)}`;
}

/** Scenarios can be measured one by one, so each has a date and a load. */
export function whenMeasured({ machine, versions, scenarios }, measured) {
  const { cpu, cores, memoryGb, system } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const results = measured.map(({ name }) => ({ name, ...scenarios[name] }));
  return [
    '## When it was measured',
    `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}. ${list.join(', ')}.`,
    results.map((result) => whenOf(result, cores)).join('\n'),
  ].join('\n\n');
}

/** On a machine with other work, times are too long and counts are not. */
function whenOf({ name, date, load, rounds }, cores) {
  const state = load < cores / 2 ? 'the machine was quiet' : 'other work ran on the machine';
  const count = rounds.length === 1 ? 'one round' : `${rounds.length} rounds`;
  return `- \`${name}\`: ${date.slice(0, 10)}, ${count}; ${state} (load average ${load.toFixed(1)} before it began).`;
}

function setup() {
  const rows = CONTESTANTS.map(({ label, configuration }) => [label, configuration]);
  return `## How each one is set up\n\n${markdownTable([['', 'Setting'], ...rows], 2)}`;
}

export function section(scenario, result, notes, charts) {
  const { name, title, meaning, how } = scenario;
  const start = [`## ${title}`, meaning, how];
  const note = notes[name] ? [notes[name]] : [];
  if (result.skipped) return [...start, `Not measured: ${result.skipped}`, ...note];
  const { header, rows } = resultRows(scenario, result);
  const bold = (row) => (isOurs(row.name) ? row.cells.map((cell) => (cell === '-' ? cell : `**${cell}**`)) : row.cells);
  const targets = result.targets.map((target) => [...targetCells(target), verdict(target)]);
  return [
    ...start,
    markdownTable([header, ...rows.map(bold)]),
    ...(targets.length > 0 ? [markdownTable([['Target', 'Result', 'Limit', ''], ...targets])] : []),
    ...list([...standing(scenario, result), ...remarks(result)]),
    ...settings(result),
    ...(charts[name] ? [`![${title}](${charts[name]})`] : []),
    ...note,
  ];
}

function list(lines) {
  return lines.length === 0 ? [] : [lines.map((line) => `- ${line}`).join('\n')];
}

/** What was tried and chosen, of those that have a choice. */
function settings({ settings: chosen, tried }) {
  if (chosen === undefined) return [];
  const lines = Object.entries(tried).flatMap(([name, trials]) => {
    if (trials.length < 2) return [];
    const all = trials.map(
      ({ tuning, leasesPerSecond }) => `${written(tuning)}: ${Math.round(leasesPerSecond ?? 0)}/s`,
    );
    return [`${labelOf(name)}: ${written(chosen[name])} (tried ${all.join(', ')})`];
  });
  return lines.length === 0 ? [] : ['Settings that were chosen:', ...list(lines)];
}

function written(tuning) {
  return Object.entries(tuning)
    .map(([option, value]) => `${option} ${value}`)
    .join(', ');
}

/** As GitHub makes it of a heading. */
export function anchor(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}
