// Where results go: of a full run to results/latest.json and the page, of anything else to results/partial.json.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SCENARIOS } from '../scenarios/index.mjs';
import { CAPACITY_PAGE, CAPACITY_RESULTS, capacityPage } from './capacity-page.mjs';
import { networkPage } from './network-page.mjs';
import { benchmarkPage } from './page.mjs';
import { scenarioChart } from './scenario-chart.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const BENCH = join(ROOT, 'tools/bench');
const LATEST = join(BENCH, 'results/latest.json');
const PARTIAL = join(BENCH, 'results/partial.json');
const PAGE = join(ROOT, 'docs/operations/benchmarks.md');
const NETWORK_PAGE = join(ROOT, 'docs/operations/benchmarks/network.md');
const CHARTS = join(ROOT, 'docs/operations/benchmarks');

/** @returns {Promise<string[]>} the files that were written */
export async function storeResults(results, { writeDocs, isPart }) {
  if (!writeDocs) return [await write(PARTIAL, JSON.stringify(results, null, 1))];
  const before = isPart ? await readLatest().catch(() => undefined) : undefined;
  const whole = before === undefined ? results : merged(before, results);
  return [await write(LATEST, await formatted(JSON.stringify(whole), 'json')), ...(await writePages(whole))];
}

/** The pages and their charts. */
export async function writePages(results) {
  await removeCharts();
  const charts = {};
  const files = [];
  for (const scenario of SCENARIOS.filter(({ name }) => results.scenarios[name]?.summary)) {
    const svg = scenarioChart(scenario, results.scenarios[scenario.name]);
    if (svg === undefined) continue;
    charts[scenario.name] = scenario.group === 'network' ? `${scenario.name}.svg` : `benchmarks/${scenario.name}.svg`;
    files.push(await write(join(CHARTS, `${scenario.name}.svg`), svg));
  }
  const extras = { notes: await readNotes(join(BENCH, 'notes')), charts };
  const ofGroup = (wanted) => SCENARIOS.filter(({ group }) => group === wanted);
  const page = benchmarkPage(results, ofGroup(undefined), extras);
  const { capacity } = results.scenarios;
  if (capacity?.plan) files.push(...(await writeCapacity(results, capacity)));
  const ofNetwork = networkPage(results, ofGroup('network'), extras);
  if (ofNetwork !== undefined) files.push(await write(NETWORK_PAGE, await formatted(ofNetwork, 'markdown')));
  return [...files, await write(PAGE, await formatted(page, 'markdown'))];
}

/** A page stands beside them. */
async function removeCharts() {
  const names = await readdir(CHARTS).catch(() => []);
  await Promise.all(names.filter((name) => name.endsWith('.svg')).map((name) => rm(join(CHARTS, name))));
}

/** The page, and the constants of which its numbers and those of the calculator are made. */
async function writeCapacity({ machine, versions }, { plan, date, load }) {
  const results = { measured: { date, load, machine, versions }, ...plan };
  const page = capacityPage(await readFile(join(ROOT, CAPACITY_PAGE), 'utf8'), results);
  return [
    await write(join(ROOT, CAPACITY_RESULTS), await formatted(JSON.stringify(results), 'json')),
    await write(join(ROOT, CAPACITY_PAGE), await formatted(page, 'markdown')),
  ];
}

export async function readLatest() {
  return JSON.parse(await readFile(LATEST, 'utf8'));
}

/** A part that was measured anew, beside the rest as it was. Each scenario has a date of its own. */
export function merged(before, { machine, versions, scenarios }) {
  return { ...before, machine, versions, scenarios: { ...before.scenarios, ...scenarios } };
}

/** What people have written about scenarios: `<scenario>.md`, and `intro.md`. */
export async function readNotes(folder) {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.md') && name !== 'README.md');
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return Object.fromEntries(names.map((name, index) => [name.slice(0, -'.md'.length), texts[index].trim()]));
}

/** As the rest of the repository is. */
async function formatted(text, parser) {
  const { format, resolveConfig } = await import('prettier');
  return format(text, { ...(await resolveConfig(PAGE)), parser });
}

async function write(file, text) {
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, text);
  return relative(ROOT, file);
}
