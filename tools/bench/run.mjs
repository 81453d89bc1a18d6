// The benchmark itself; scripts/bench.mjs starts it with REDIS_URL of a Redis of its own.
import { loadavg } from 'node:os';
import { compareWith } from './against.mjs';
import { Bench } from './bench.mjs';
import { readOptions, USAGE } from './options.mjs';
import { killAllWorkers } from './processes/worker-process.mjs';
import { evaluate } from './report/evaluate.mjs';
import { machine, versions } from './report/machine.mjs';
import { readLatest, storeResults, writePages } from './report/store.mjs';
import { scenarioReport } from './report/table.mjs';
import { GROUPS, SCENARIOS } from './scenarios/index.mjs';

const url = process.env.REDIS_URL;
if (!url) throw new Error('REDIS_URL is missing: start this with `npm run bench`');

const args = process.argv.slice(2);
const options = readOptions(
  args,
  SCENARIOS.map(({ name }) => name),
  GROUPS,
);

if (options.help || options.docsOnly) {
  if (options.help) console.log(USAGE);
  else for (const file of await writePages(await readLatest())) console.log(`written: ${file}`);
  process.exit();
}

process.once('exit', killAllWorkers);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

const say = (line) => process.stderr.write(`${line}\n`);
if (options.against !== undefined) {
  const failures = await compareWith(options.against, { ...options, url, say });
  process.exit(failures > 0 ? 1 : 0);
}

const startedAt = Date.now();
const load = Number(loadavg()[0].toFixed(2));
const bench = new Bench({ ...options, url, say });
const results = {
  commandLine: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
  date: new Date().toISOString(),
  quick: options.quick,
  rounds: options.rounds,
  durationS: 0,
  machine: machine(),
  versions: await versions(url),
  scenarios: {},
};

const reports = [];
for (const scenario of SCENARIOS.filter(({ name }) => options.scenarios.includes(name))) {
  bench.say(`${scenario.name} ...`);
  const measured = await scenario.run(bench);
  const result = { date: new Date().toISOString(), load, ...evaluate(scenario, measured) };
  results.scenarios[scenario.name] = result;
  reports.push(scenarioReport(scenario, result));
  bench.say(`\n${reports.at(-1)}`);
}
await bench.fleets.dropAll();
results.durationS = Math.round((Date.now() - startedAt) / 1000);

console.log(`\n${reports.join('\n')}`);
for (const file of await storeResults(results, options)) console.log(`written: ${file}`);
for (const failure of bench.failures) console.error(`FAILED  ${failure}`);
console.log(`${results.durationS} s`);
process.exit(bench.failures.length > 0 ? 1 : 0);
