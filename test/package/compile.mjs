import { fork } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A compiler keeps most of what it makes: to look for what it has forgotten, again and again and by threads, takes a fifth of its time. */
const FEW_COLLECTIONS = ['--single-threaded-gc', '--min-semi-space-size=64', '--max-semi-space-size=64'];
const COMPILER = fileURLToPath(new URL('compiler.mjs', import.meta.url));

let compiler;
let last = 0;
const waiting = new Map();

/**
 * Compiles a project by the TypeScript that it has installed, as `tsc` does.
 *
 * @param {string} folder which has the packages
 * @param {string} [config] its `tsconfig.json`
 * @returns {Promise<string>} what `tsc` prints: nothing, or errors
 */
export function compile(folder, config = join(folder, 'tsconfig.json')) {
  compiler ??= startCompiler();
  return new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, { resolve, reject });
    compiler.channel.ref();
    compiler.send({ id, folder, config });
  });
}

/** Rejects with the errors. */
export async function compileWithoutErrors(folder) {
  const output = await compile(folder);
  if (output !== '') throw new Error(output);
}

/** It ends with this process, which waits for it only while it works. */
function startCompiler() {
  const child = fork(COMPILER, { execArgv: FEW_COLLECTIONS });
  child.unref();
  child.on('message', ({ id, output }) => {
    waiting.get(id).resolve(output);
    waiting.delete(id);
    if (waiting.size === 0) child.channel.unref();
  });
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`The compiler has ended with ${code}`));
  });
  return child;
}
