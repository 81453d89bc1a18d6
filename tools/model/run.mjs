// npm run model: the faithful model must be free of errors in every configuration, and every mutant must be caught.
//   node tools/model/run.mjs [--trail] [name ...]   only these; --trail shows the steps to each error, also of mutants
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, folderOf, shortestTrail, stop } from './checker.mjs';
import { configurations, mutants } from './configurations.mjs';
import { findToolchain } from './toolchain.mjs';

const parallel = 2;

/** Returns the error in a result, or undefined. */
function complaint({ property }, result) {
  if (property) return result.violated === property ? undefined : `not caught: ${property} holds`;
  if (result.violated) return `${result.violated} fails`;
  return result.exhaustive ? undefined : `not exhaustive: ${result.incomplete ?? result.output}`;
}

function report(task, result, wrong) {
  const outcome = wrong ? `FAILED ${wrong}` : (task.property ?? 'no error');
  const columns = [
    task.name.padEnd(18),
    String(result.states).padStart(9),
    result.seconds.toFixed(1).padStart(7),
    outcome,
  ];
  console.log(columns.join('  '));
}

async function main() {
  const { values, positionals } = parseArgs({ options: { trail: { type: 'boolean' } }, allowPositionals: true });
  const all = [...configurations, ...mutants];
  const unknown = positionals.filter((name) => !all.some((task) => task.name === name));
  if (unknown.length)
    throw new Error(`Unknown: ${unknown.join(', ')}. Known: ${all.map(({ name }) => name).join(', ')}`);
  const tasks = all.filter(({ name }) => !positionals.length || positionals.includes(name));

  const tools = findToolchain();
  const folder = await mkdtemp(join(tmpdir(), 'lock-model-'));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop.abort());
  let workers = [];
  try {
    console.log(`${'model'.padEnd(18)}     states  seconds  result (of a mutant: the property that catches it)`);
    const started = performance.now();
    const queue = [...tasks];
    const failures = [];
    const toShow = [];
    const worker = async () => {
      for (let task = queue.shift(); task; task = queue.shift()) {
        const result = await check(tools, task, folder);
        const wrong = complaint(task, result);
        report(task, result, wrong);
        if (wrong) failures.push(task);
        if (result.violated && (wrong || values.trail)) toShow.push({ ...task, depth: result.depth });
        else await rm(folderOf(task, folder), { recursive: true, force: true });
      }
    };
    workers = Array.from({ length: parallel }, worker);
    await Promise.all(workers);
    for (const task of toShow) {
      console.log(`\n${task.name}: the steps to the error`);
      for (const line of await shortestTrail(tools, task, folder)) console.log(`  ${line}`);
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(`\n${tasks.length - failures.length} of ${tasks.length} as expected, ${seconds} s`);
    if (failures.length) process.exitCode = 1;
  } finally {
    // After an error the other worker is still busy in there.
    stop.abort();
    await Promise.allSettled(workers);
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
