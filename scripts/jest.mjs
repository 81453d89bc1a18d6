// Starts Jest for the commands.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { inForeground } from './command.mjs';
import { root } from './setup.mjs';
import { SetupError } from './setup/setup-error.mjs';

/** Files that `npm test` leaves to `npm run test:all`. */
export const SLOW = '\\.slow\\.test\\.ts$';
/** Files that only `npm run test:long` runs. */
export const LONG = '\\.long\\.test\\.ts$';

/** More than processors, because many tests wait for a server. */
const WORKERS = availableParallelism() + 2;

/**
 * @param {readonly string[]} args
 * @param {Record<string, string | undefined>} env
 * @returns {Promise<number>} the exit code
 */
export function jest(args, env) {
  const node = [
    '--experimental-vm-modules', // Nest 12 is ESM only
    '--disable-warning=ExperimentalWarning',
    join(root, 'node_modules/jest/bin/jest.js'),
  ];
  return inForeground(process.execPath, [...node, `--maxWorkers=${WORKERS}`, ...args], { cwd: root, env });
}

/**
 * The test files that a path names: the file itself, or all in a folder.
 *
 * @param {string} path
 * @throws SetupError if there is no such file or folder, or no test in it
 */
export function testFiles(path) {
  const full = join(root, path);
  if (!existsSync(full)) throw new SetupError(`${path} does not exist. Name a test file or a folder, from the root.`);
  const names = statSync(full).isDirectory() ? readdirSync(full, { recursive: true, encoding: 'utf8' }) : [''];
  const files = names.map((name) => join(path, name)).filter((file) => /^(?!.*node_modules).*\.test\.ts$/.test(file));
  if (files.length === 0) throw new SetupError(`${path} has no tests: they are called *.test.ts.`);
  return files;
}
