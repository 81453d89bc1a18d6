// The benchmark itself; scripts/bench.mjs starts it with REDIS_URL of a Redis of its own.
import { readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { compareWith } from './against.mjs';
import { Bench } from './bench.mjs';
import { readOptions, USAGE } from './options.mjs';
import { killAllWorkers } from './processes/worker-process.mjs';
import { evaluate } from './report/evaluate.mjs';
import { machine, versions } from './report/machine.mjs';
import { pageWith } from './report/page.mjs';
import { scenarioReport } from './report/table.mjs';
import { GROUPS, SCENARIOS } from './scenarios/index.mjs';

const PAGE = fileURLToPath(new URL('../../docs/operations/benchmarks.md', import.meta.url));

const url = process.env.REDIS_URL;
if (!url) throw new Error('REDIS_URL is missing: start this with `npm run bench`');

const known = SCENARIOS.map(({ name }) => name);
const options = readOptions(process.argv.slice(2), known, GROUPS);
if (options.help) {
  console.log(`${USAGE}\nScenarios: ${[...Object.keys(GROUPS), ...known].join(', ')}`);
  process.exit();
}

process.once('exit', killAllWorkers);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

const say = (line) => process.stderr.write(`${line}\n`);
if (options.against !== undefined) {
  const failures = await compareWith(options.against, { ...options, url, say });
  process.exit(failures > 0 ? 1 : 0);
}

const run = {
  date: new Date().toISOString(),
  load: loadavg()[0],
  rounds: options.rounds,
  machine: machine(),
  versions: await versions(url),
  scenarios: {},
};
const startedAt = Date.now();
const bench = new Bench({ ...options, url, say });
const reports = [];
for (const scenario of SCENARIOS.filter(({ name }) => options.scenarios.includes(name))) {
  bench.say(`${scenario.name} ...`);
  const result = evaluate(scenario, await scenario.run(bench));
  run.scenarios[scenario.name] = result;
  reports.push(scenarioReport(scenario, result));
  bench.say(`\n${reports.at(-1)}`);
}
await bench.fleets.dropAll();

console.log(`\n${reports.join('\n')}`);
console.log(`${JSON.stringify(run.machine)} ${JSON.stringify(run.versions)}`);
console.log(
  `Load average before it began: ${run.load.toFixed(1)}. It took ${Math.round((Date.now() - startedAt) / 1000)} s.`,
);
if (options.writeDocs) {
  writeFileSync(PAGE, pageWith(readFileSync(PAGE, 'utf8'), run, SCENARIOS));
  console.log(`written: ${PAGE}`);
}
for (const failure of bench.failures) console.error(`FAILED  ${failure}`);
process.exit(bench.failures.length > 0 ? 1 : 0);
