// npm run bench -- --against <commit>: this tree and an earlier commit take turns, and so does that commit with itself.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bench } from './bench.mjs';
import { BEFORE, contestant, OURS } from './contestants/index.mjs';
import { spread } from './measure/statistics.mjs';
import { WorkerProcess } from './processes/worker-process.mjs';
import { formatNumber, formatSpread } from './report/format.mjs';
import { alignColumns } from './report/table.mjs';
import { SCENARIOS } from './scenarios/index.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const [FIRST, AGAIN] = BEFORE.map(({ name }) => name);
/** How many leases the counts are taken over. */
const COUNTED_LEASES = 2_000;

/**
 * @param {string} commit whatever git takes for one
 * @returns {Promise<number>} how much went wrong with this tree
 */
export async function compareWith(commit, options) {
  const sha = execFileSync('git', ['rev-parse', '--verify', `${commit}^{commit}`], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
  process.env.BENCH_BEFORE = buildOf(sha);
  const bench = new Bench({ ...options, everyone: [contestant(OURS), ...BEFORE] });
  const rows = [['', '', 'this tree', 'of the commit', 'the commit of itself']];
  for (const scenario of SCENARIOS.filter(({ name }) => options.scenarios.includes(name))) {
    bench.say(`${scenario.name} ...`);
    const { rounds } = await scenario.run(bench);
    for (const metric of scenario.compare) rows.push(comparison(scenario, metric, rounds));
  }
  await bench.fleets.dropAll();
  bench.say('counts ...');
  rows.push(...(await countsOfEach(bench)));
  console.log(`This tree beside ${sha.slice(0, 10)}: medians of ${options.rounds} rounds, (smallest-largest)\n`);
  console.log(alignColumns(rows));
  for (const failure of bench.failures) console.error(`FAILED  ${failure}`);
  return bench.failures.length;
}

/** One row: ratios are taken within a round, where everyone had the same machine. */
export function comparison(scenario, metric, rounds) {
  const { label, digits } = scenario.metrics.find(({ id }) => id === metric);
  const ratio = (name, of) =>
    spread(rounds.map(({ values }) => values[name]?.[metric] / values[of]?.[metric]).filter(Number.isFinite));
  const own = spread(rounds.map(({ values }) => values[OURS]?.[metric]).filter(Number.isFinite));
  return [
    scenario.name,
    label,
    formatNumber(own.median, digits),
    formatSpread(ratio(OURS, FIRST), 3),
    formatSpread(ratio(AGAIN, FIRST), 3),
  ];
}

/** What a noisy machine cannot change: commands, bytes on the wire and bytes allocated for each lease. */
async function countsOfEach(bench) {
  const counted = {};
  for (const { name } of bench.everyone) {
    const execArgv = ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256'];
    const worker = new WorkerProcess({ contestant: name, url: bench.url, execArgv });
    try {
      const args = { leases: COUNTED_LEASES, resource: bench.resource('counts') };
      counted[name] = await worker.ask('count', args, { timeoutMs: 60_000 });
    } finally {
      worker.kill();
      await worker.exited;
    }
  }
  const of = (name, what) => formatNumber(counted[name][what] / counted[FIRST][what], 3);
  return Object.keys(counted[OURS]).map((what) => [
    'a free lock',
    what,
    formatNumber(counted[OURS][what], 1),
    of(OURS, what),
    of(AGAIN, what),
  ]);
}

/** Kept by its hash, inside node_modules: there it finds the packages that it imports. */
function buildOf(sha) {
  const folder = join(root, 'node_modules/.cache/nestjs-redis-lock', sha);
  const entryPoint = join(folder, 'dist/esm/index.js');
  if (existsSync(entryPoint)) return entryPoint;
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync('git', ['archive', sha], { cwd: root, maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: folder, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${sha} does not build`);
  return entryPoint;
}
