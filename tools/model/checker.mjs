// One search of a model: spin makes a C program of it, which visits every state or stops at the first error.
import { execFile } from 'node:child_process';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NUMBERS, SHAPE } from './configurations.mjs';

/** Milliseconds, on a machine that does much else. */
const searchLimit = 600_000;
const trailLimit = 60_000;

/** Ends all programs that run. */
export const stop = new AbortController();

/** Rejects only if the program cannot run: `pan` exits with 0 whether it finds an error or not. */
const run = (program, args, { cwd, timeout, env }) =>
  new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      {
        cwd,
        timeout,
        env: { ...process.env, ...env },
        killSignal: 'SIGKILL',
        maxBuffer: 64 << 20,
        signal: stop.signal,
      },
      (error, stdout, stderr) => {
        if (error?.code === 'ENOENT' || error?.code === 'ABORT_ERR') return reject(error);
        resolve({ failed: Boolean(error), killed: Boolean(error?.killed), output: stdout + stderr });
      },
    );
  });

const MODEL = 'lock.pml';

const preprocessed = (compiler, set) => {
  const options = Object.entries({ ...NUMBERS, ...set }).map(([name, value]) => `-D${name}=${value}`);
  return [`-P${compiler} -E -x c`, ...options];
};

/** Compiles the model. A program that gets its numbers at the start has none of them in `set`. */
async function build({ spin, compiler }, set, cwd, extra = []) {
  await mkdir(cwd, { recursive: true });
  await copyFile(join(import.meta.dirname, MODEL), join(cwd, MODEL));
  const made = await run(spin, [...preprocessed(compiler, set), '-a', MODEL], { cwd });
  // spin prints syntax errors and may still exit with 0.
  if (made.failed || /\bError: /.test(made.output)) throw new Error(`spin:\n${made.output}`);
  // Two run at a time, and each may use 1.5 GB. -O2 takes longer than it saves: a search mostly waits for memory.
  // Nothing is local to a process, so there is no order of steps to reduce (NOREDUCE), and to pack states (without
  // NOCOMP) takes longer than to read what that saves.
  const flags = [
    '-O1',
    '-finline-small-functions',
    '-w',
    '-DSAFETY',
    '-DNOREDUCE',
    '-DNOCOMP',
    '-DMEMLIM=1500',
    ...extra,
  ];
  const compiled = await run(compiler, [...flags, '-o', 'pan', 'pan.c'], { cwd });
  if (compiled.failed) throw new Error(`${compiler}:\n${compiled.output}`);
}

/**
 * -E: a run that is cut ends somewhere, which is no deadlock. -w: the states are kept in a table of 2 ** w places, for which a mutant
 * has few.
 */
const search = (program, { set, property }, cwd, timeout, ...args) => {
  const env = Object.fromEntries(Object.entries(set).map(([name, value]) => [name, String(value)]));
  return run(join(program, 'pan'), ['-E', '-m20000', `-w${property ? 20 : 24}`, ...args], { cwd, timeout, env });
};

/** The folders of programs, by what they are made of: configurations of one shape, and their mutants, share one. */
const programs = new Map();

function programFor(tools, { set }, folder) {
  const shape = Object.fromEntries(Object.entries(set).filter(([name]) => SHAPE.has(name)));
  const recipe = JSON.stringify(shape);
  let made = programs.get(recipe);
  if (!made) {
    const cwd = join(folder, `program-${programs.size}`);
    made = build(tools, shape, cwd).then(() => cwd);
    programs.set(recipe, made);
  }
  return made;
}

/** The folder of the output of a search. */
export const folderOf = ({ name }, folder) => join(folder, name);

/** `violated`: the name of the property that fails. `exhaustive`: every state was visited, and no property fails. */
export async function check(tools, task, folder) {
  const program = await programFor(tools, task, folder);
  const cwd = folderOf(task, folder);
  await mkdir(cwd);
  const started = performance.now();
  const { output, killed } = await search(program, task, cwd, searchLimit);
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

/** Returns the shortest trail to the error that `check` found in the same folder, within a minute. */
export async function shortestTrail(tools, task, folder) {
  const cwd = folderOf(task, folder);
  // Spin itself shows the steps, and it runs no C: so the model itself has all numbers.
  await build(tools, task.set, cwd, ['-DREACH']);
  // Overwrites the trail with a shorter one whenever it finds one.
  await search(cwd, task, cwd, trailLimit, '-i', `-m${task.depth}`);
  const { output } = await run(tools.spin, [...preprocessed(tools.compiler, task.set), '-t', MODEL], { cwd });
  const steps = output.split('\n').map((line) => line.trim());
  return steps
    .slice(
      0,
      steps.findIndex((line) => line.startsWith('#processes')),
    )
    .filter(Boolean);
}
