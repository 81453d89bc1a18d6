// .ci/run: everything a change has to pass, on a clean checkout. Needs Node; what else it takes is found or installed.
//   .ci/run --plan   prints what would run, and why
//   .ci/run --all    runs everything, whatever has changed
// LANDED is the commit that the change is made to, where it is not that of origin/main.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand } from '../command.mjs';
import { changesSince, howToClaim } from '../selection/base.mjs';
import { MUTANTS } from '../selection/mutants.mjs';
import { planFor } from '../selection/plan.mjs';
import { testPatterns } from '../selection/suites.mjs';
import { root } from '../setup.mjs';
import { environmentOf } from '../setup/find-redis.mjs';
import { NPM_CI } from '../setup/packages.mjs';
import { ensureRedis } from '../setup/redis.mjs';
import { Stages } from './stages.mjs';
import { PARTS, runParts } from '../test-parts.mjs';
import { slowerThanKept } from '../timings/kept.mjs';

const NODE = process.execPath;
const MODEL = join(root, 'tools/model/run.mjs');
/** Lint says that it was left out, where luacheck cannot be installed; on CI it fails. */
const PROGRAMS = `
  if ! command -v luacheck >/dev/null && command -v apt-get >/dev/null; then
    as_root=''
    if [ "$(id -u)" != 0 ]; then as_root='sudo -n'; fi
    { $as_root apt-get update -qq && $as_root apt-get install -y -qq lua-check >/dev/null; } || true
  fi
  "$0" --input-type=module -e "
    import * as toolchain from './test/support/process/toolchain.mjs';
    const { findTools, ...tools } = toolchain;
    findTools(Object.values(tools));"`;

await runCommand(async () => {
  const { values } = parseArgs({ options: { all: { type: 'boolean' }, plan: { type: 'boolean' } } });
  const plan = planFor(await changesSince({ landed: process.env.LANDED }), values);
  console.log(plan.lines.join('\n'));
  if (values.plan) return 0;

  const stages = new Stages();
  // Programs here, because tests that run at the same time cannot all use apt-get.
  const programs = stages.beside('programs', 'bash', ['-euc', PROGRAMS, NODE]);
  const model = programs.then((found) => found && checkModel(stages, plan));
  if (await prepare(stages, programs)) await test(stages, plan, model);
  else stages.stop();
  await model;
  const passed = stages.failed.length === 0;
  console.log(`\n${stages.summary()}`);
  if (plan.leftOut.length === 0) console.log(slowerThanKept('.ci/run --all', performance.now() / 1_000) ?? '');
  if (passed && plan.leftOut.length === 0) console.log(await howToClaim());
  return passed ? 0 : 1;
});

/** It needs a compiler and no packages of npm: so from the beginning on it has the time that all others leave. */
async function checkModel(stages, { runs, mutants = [] }) {
  if (runs.includes('model')) await stages.behind('model', NODE, [MODEL, ...mutants.filter(isOfModel)]);
}

/** What takes a minute. What fails here, fails at once. */
async function prepare(stages, programs) {
  // Both wait for the network.
  const found = await Promise.all([stages.beside('npm packages', 'npm', NPM_CI), programs]);
  if (found.includes(false)) return false;
  const made = await Promise.all([
    stages.beside('format, lint, types', 'npm', ['run', '--silent', 'check', '--', '--static']),
    stages.beside('build', 'npm', ['run', '--silent', 'build']),
  ]);
  return !made.includes(false);
}

/** The tests wait more than they work. What has no time-outs of its own has the time that they leave. */
async function test(stages, { runs, leftOut, mutants }, model) {
  const redis = await ensureRedis({ ownServer: true });
  const env = { ...process.env, TEST_SPEED: 'all', ...environmentOf(redis) };
  const parts = PARTS.all({ tests: testPatterns(leftOut), consumers: runs.includes('consumers') });
  const envOf = { chaos: mutants === undefined ? {} : { MUTANTS: mutants.join(',') } };

  const behind = async () => {
    await stages.behind('publint, are the types wrong', 'npm', ['run', '--silent', 'check:package']);
    await stages.behind('benchmark: its own tests', NODE, ['--test', ...testsOf('tools/bench')], { env });
  };
  await Promise.all([runParts(stages, parts, { env, envOf, others: model }), behind()]);
}

function isOfModel(name) {
  return MUTANTS.some((mutant) => mutant.name === name && mutant.suite === 'model');
}

function testsOf(folder) {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.test.mjs') && !name.includes('node_modules'))
    .map((name) => join(folder, name));
}
