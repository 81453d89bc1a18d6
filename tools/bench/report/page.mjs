// The generated part of docs/operations/benchmarks.md: the machine, one table, three charts. The rest of the page is
// written by hand.
import { contestant, OURS } from '../contestants/index.mjs';
import { formatNumber } from './format.mjs';

const PART = /<!-- measured -->\n[^]*<!-- end -->/;
const COLUMNS = {
  'By hand': ['raw'],
  ...Object.fromEntries(
    [OURS, 'redis-semaphore', 'redlock', 'sesamecare-redlock', 'redlock-universal', 'node-redisson'].map((name) => [
      contestant(name).label,
      [name],
    ]),
  ),
};

const ROWS = [
  ['A free lock, one caller: leases/s', 'uncontended-1', 'leasesPerSecond'],
  ['The same: processor time of Redis for each lease, µs', 'uncontended-1', 'redisCpuUs'],
  ['The same: bytes to Redis for each lease', 'uncontended-1', 'bytes'],
  ['The same: processor time of the client for each lease, µs', 'uncontended-1', 'cpuUs'],
  ['Free locks, 64 callers at once: leases/s', 'uncontended-64', 'leasesPerSecond'],
  ['One lock, 32 callers: leases/s', 'contended-empty', 'leasesPerSecond'],
  ['The same: longest wait, ms', 'contended-empty', 'longestWaitMs'],
  ['One lock, 32 callers, 2 ms of work under it: leases/s', 'contended-2ms', 'leasesPerSecond'],
  ['The same: longest wait, ms', 'contended-2ms', 'longestWaitMs'],
  ['One lock, 32 callers: commands to Redis for each lease', 'commands', 'waiters32'],
  ['Hand-over to another process, p50: µs', 'handover', 'p50Us'],
  ['The holder is killed: calls that fail, of 160 in 40 s', 'outages', 'failedCalls'],
  ['The same: until a call succeeds, s', 'outages', 'outageS'],
];
const CHARTS = [0, 5, 10].map((index) => ROWS[index]);

/** The scenarios that the page needs. */
export const PAGE_SCENARIOS = [...new Set(ROWS.map(([, scenario]) => scenario))];

/**
 * @param {string} text the page as it is
 * @param {object} run `{ date, load, rounds, machine, versions, scenarios }`, with the results of scenarios as `evaluate` returns them
 * @param {readonly object[]} scenarios
 */
export function pageWith(text, run, scenarios) {
  const valueOf = (names, [, scenario, metric]) => {
    const found = names.map((name) => run.scenarios[scenario].summary[name]).find((result) => result !== undefined);
    return found?.[metric]?.median ?? (found?.failed ? 'failed' : undefined);
  };
  const cell = (names, row) => {
    const value = valueOf(names, row);
    const { digits } = scenarios.find(({ name }) => name === row[1]).metrics.find(({ id }) => id === row[2]);
    const written = typeof value === 'number' ? formatNumber(value, digits) : (value ?? '');
    return names[0] === OURS ? `**${written}**` : written;
  };
  const table = [
    ['', ...Object.keys(COLUMNS)],
    ['---', ...Object.keys(COLUMNS).map(() => '--:')],
    ...ROWS.map((row) => [row[0], ...Object.values(COLUMNS).map((names) => cell(names, row))]),
  ].map((cells) => `| ${cells.join(' | ')} |`);
  const charts = CHARTS.map((row) => {
    const bars = Object.entries(COLUMNS)
      .map(([label, names]) => [label, valueOf(names, row)])
      .filter(([, value]) => typeof value === 'number');
    return chart(row[0], bars);
  });
  const parts = [where(run), `<!-- prettier-ignore -->\n\n${table.join('\n')}`, ...charts];
  return text.replace(PART, `<!-- measured -->\n\n${parts.join('\n\n')}\n\n<!-- end -->`);
}

function where({ date, load, rounds, machine: { cpu, cores, memoryGb, system }, versions }) {
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return (
    `Medians of up to ${rounds} rounds, ${date.slice(0, 10)}. ${cpu}, ${cores} cores, ${memoryGb} GB, ${system}; ` +
    `load average ${load.toFixed(1)} before it began. ${list.join(', ')}.`
  );
}

/** From zero on, and in thousands where the numbers of the axis would run into one another. */
function chart(title, bars) {
  const most = Math.max(...bars.map(([, value]) => value));
  const unit = most > 10_000 ? 1_000 : 1;
  return [
    '```mermaid',
    `%%{init: {'themeVariables': {'xyChart': {'plotColorPalette': '#2f81f7'}}}}%%`,
    'xychart-beta horizontal',
    `  title "${title}${unit > 1 ? ', in thousands' : ''}"`,
    `  x-axis [${bars.map(([label]) => `"${label}"`).join(', ')}]`,
    `  y-axis 0 --> ${Math.ceil(most / unit)}`,
    `  bar [${bars.map(([, value]) => Number((value / unit).toPrecision(4))).join(', ')}]`,
    '```',
  ].join('\n');
}
