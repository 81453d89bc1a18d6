// npm run bench -- --against <commit>: this tree and an earlier commit take turns, and so do that commit with itself, and the
// fixed base. Each change is compared with the commit before it, so small losses add up unseen: the fixed base shows them.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bench } from './bench.mjs';
import { BEFORE, CALLS, contestant, eachCallOf, FIXED_BASE, OURS } from './contestants/index.mjs';
import { FASTEST_COMMIT } from './fastest-commit.mjs';
import { spread } from './measure/statistics.mjs';
import { WorkerProcess } from './processes/worker-process.mjs';
import { formatNumber, formatSpread } from './report/format.mjs';
import { alignColumns } from './report/table.mjs';
import { SCENARIOS } from './scenarios/index.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const [FIRST, AGAIN] = BEFORE.map(({ name }) => name);
const FIXED = FIXED_BASE.name;
/** The leases that are counted. */
const COUNTED_LEASES = 2_000;

/**
 * @param {string} commit whatever git takes for one, or `fixed` for the fixed base alone
 * @returns {Promise<number>} how much went wrong with this tree
 */
export async function compareWith(commit, options) {
  const sha = shaOf(commit === 'fixed' ? FASTEST_COMMIT : commit);
  const isFixed = sha === FASTEST_COMMIT;
  process.env.BENCH_BEFORE = buildOf(sha);
  if (!isFixed) process.env.BENCH_FIXED = buildOf(shaOf(FASTEST_COMMIT));
  const others = [...eachCallOf(BEFORE[0]), BEFORE[1], ...(isFixed ? [] : eachCallOf(FIXED_BASE))];
  const bench = new Bench({ ...options, everyone: [...eachCallOf(contestant(OURS)), ...others] });
  const rows = [
    ['', '', 'this tree', 'of the commit', 'the commit of itself', ...(isFixed ? [] : ['of the fixed base'])],
  ];
  for (const scenario of SCENARIOS.filter(({ name }) => options.scenarios.includes(name))) {
    bench.say(`${scenario.name} ...`);
    const { rounds } = await scenario.run(bench);
    for (const metric of scenario.compare) {
      for (const { call } of [{}, ...CALLS]) rows.push(comparison(scenario, metric, rounds, call));
    }
  }
  await bench.fleets.dropAll();
  bench.say('counts ...');
  rows.push(...(await countsOfEach(bench)));
  const beside = isFixed
    ? `${sha.slice(0, 10)}, the fixed base`
    : `${sha.slice(0, 10)} and the fixed base ${FASTEST_COMMIT.slice(0, 10)}`;
  console.log(`This tree beside ${beside}: medians of ${options.rounds} rounds, (smallest-largest)\n`);
  console.log(alignColumns(rows));
  for (const failure of bench.failures) console.error(`FAILED  ${failure}`);
  return bench.failures.length;
}

/**
 * Returns one row: ratios within a round, in which all had the same machine. The last ratio only if the fixed base took
 * part.
 *
 * @param {string} [call] one of CALLS; acquire with options without it
 */
export function comparison(scenario, metric, rounds, call) {
  const of = (name) => (call ? `${name}:${call}` : name);
  const { label, digits } = scenario.metrics.find(({ id }) => id === metric);
  const ratio = (one, other) => {
    const ratios = rounds.map(({ values }) => values[one]?.[metric] / values[other]?.[metric]).filter(Number.isFinite);
    return ratios.length === 0 ? '-' : formatSpread(spread(ratios), 3);
  };
  const own = spread(rounds.map(({ values }) => values[of(OURS)]?.[metric]).filter(Number.isFinite));
  return [
    scenario.name,
    call ? `  ${CALLS.find((one) => one.call === call).label}` : label,
    formatNumber(own.median, digits),
    ratio(of(OURS), of(FIRST)),
    call ? '-' : ratio(AGAIN, FIRST),
    ...(rounds.some(({ values }) => values[FIXED]) ? [ratio(of(OURS), of(FIXED))] : []),
  ];
}

/**
 * Measures the counts that a noisy machine cannot change: commands, bytes on the wire and bytes allocated for each
 * lease.
 */
async function countsOfEach(bench) {
  const counted = {};
  for (const { name } of bench.everyone.filter((one) => !one.name.includes(':'))) {
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
    ...(counted[FIXED] ? [formatNumber(counted[OURS][what] / counted[FIXED][what], 3)] : []),
  ]);
}

function shaOf(commit) {
  const options = { cwd: root, encoding: 'utf8' };
  return execFileSync('git', ['rev-parse', '--verify', `${commit}^{commit}`], options).trim();
}

/** Kept by its hash, inside node_modules: there it finds the packages that it imports. The build wants no such folder around it. */
function buildOf(sha) {
  const kept = join(root, 'node_modules/.cache/nestjs-redis-lock', sha);
  const entryPoint = join(kept, 'dist/esm/index.js');
  if (existsSync(entryPoint)) return entryPoint;
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-redis-lock-'));
  try {
    const archive = execFileSync('git', ['archive', sha], { cwd: root, maxBuffer: 2 ** 28 });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir');
    const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: folder, stdio: 'inherit' });
    if (status !== 0) throw new Error(`${sha} does not build`);
    for (const part of ['dist', 'package.json']) cpSync(join(folder, part), join(kept, part), { recursive: true });
  } finally {
    rmSync(folder, { recursive: true });
  }
  return entryPoint;
}
