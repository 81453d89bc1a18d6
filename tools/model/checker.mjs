// One search of a model: spin makes a C program of it, which visits every state or stops at the first error.
import { execFile } from 'node:child_process';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Milliseconds, on a machine that does much else. */
const searchLimit = 600_000;
const trailLimit = 60_000;

/** Ends all programs that run. */
export const stop = new AbortController();

/** Rejects only if the program cannot run: `pan` exits with 0 whether it finds an error or not. */
const run = (program, args, { cwd, timeout }) =>
  new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { cwd, timeout, killSignal: 'SIGKILL', maxBuffer: 64 << 20, signal: stop.signal },
      (error, stdout, stderr) => {
        if (error?.code === 'ENOENT' || error?.code === 'ABORT_ERR') return reject(error);
        resolve({ failed: Boolean(error), killed: Boolean(error?.killed), output: stdout + stderr });
      },
    );
  });

const options = (set) => Object.entries(set).map(([name, value]) => `-D${name}=${value}`);

async function build({ spin, compiler }, { set, model, property }, cwd, extra) {
  await mkdir(cwd, { recursive: true });
  await copyFile(join(import.meta.dirname, model), join(cwd, model));
  const made = await run(spin, [`-P${compiler} -E -x c`, ...options(set), '-a', model], { cwd });
  // spin prints syntax errors and may still exit with 0.
  if (made.failed || /\bError: /.test(made.output)) throw new Error(`spin:\n${made.output}`);
  // Of the two that run at a time, each may take 1.5 GB.
  // A mutant is caught within a second, which no compiler is worth.
  const flags = [property ? '-O0' : '-O2', '-w', '-DSAFETY', '-DMEMLIM=1500', ...extra];
  const compiled = await run(compiler, [...flags, '-o', 'pan', 'pan.c'], { cwd });
  if (compiled.failed) throw new Error(`${compiler}:\n${compiled.output}`);
}

/** -E: a run that is cut ends somewhere, which is no deadlock. */
const search = (cwd, timeout, ...args) => run(join(cwd, 'pan'), ['-E', '-m20000', ...args], { cwd, timeout });

/** `violated`: the name of the property that fails. `exhaustive`: every state was visited, and no property fails. */
export async function check(tools, task, cwd) {
  await build(tools, task, cwd, []);
  const started = performance.now();
  const { output, killed } = await search(cwd, searchLimit);
  const incomplete = killed
    ? `stopped after ${searchLimit / 1000} s`
    : /max search depth too small|out of memory|reached -DMEMLIM bound|Search not completed/i.exec(output)?.[0];
  const violated = /assertion violated \(*(\w+)/.exec(output)?.[1];
  return {
    seconds: (performance.now() - started) / 1000,
    states: Number(/(\d+) states, stored/.exec(output)?.[1] ?? Number.NaN),
    violated,
    depth: Number(/\(at depth (\d+)\)/.exec(output)?.[1]),
    incomplete: violated ? undefined : incomplete,
    exhaustive: !incomplete && /errors: 0\b/.test(output),
    output,
  };
}

/** The steps to the error that `check` found in the same folder: the fewest to be found in a minute. */
export async function shortestTrail(tools, { depth, ...task }, cwd) {
  await build(tools, task, cwd, ['-DREACH']);
  // Overwrites the trail with a shorter one whenever it finds one.
  await search(cwd, trailLimit, '-i', `-m${depth}`);
  const { output } = await run(tools.spin, [`-P${tools.compiler} -E -x c`, '-t', ...options(task.set), task.model], {
    cwd,
  });
  const steps = output.split('\n').map((line) => line.trim());
  return steps
    .slice(
      0,
      steps.findIndex((line) => line.startsWith('#processes')),
    )
    .filter(Boolean);
}
