import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { succeed } from './program.mjs';

/** Where another one is configured, npm asks that. */
const REGISTRY = 'https://registry.npmjs.org';

/** @returns {Promise<string>} what npm printed. Rejects with that if it fails */
export function npm(args, { env, ...options }) {
  return succeed('npm', args, { ...options, env: { npm_config_update_notifier: 'false', ...env } });
}

/**
 * Writes into the lock file of a folder where its packages are. Without that, npm reads for each of them all versions that the
 * registry has. In the repository lock files have no addresses: not each npm writes them.
 */
export async function writeAddresses(folder) {
  const file = join(folder, 'package-lock.json');
  const lock = JSON.parse(await readFile(file, 'utf8'));
  for (const [path, entry] of Object.entries(lock.packages)) {
    const { name = path.split('node_modules/').at(-1), version, integrity } = entry;
    if (integrity !== undefined) entry.resolved ??= `${REGISTRY}/${name}/-/${name.split('/').at(-1)}-${version}.tgz`;
  }
  await writeFile(file, JSON.stringify(lock));
}

/**
 * A script of the project in `cwd`, and arguments for it, as `npm run` starts it: without npm, which takes as long as many scripts.
 *
 * @returns {Promise<[command: string, args: string[], options: object]>} what `runProgram` and `succeed` take
 */
export async function scriptOf(name, { args = [], env, ...options }) {
  const { scripts } = JSON.parse(await readFile(join(options.cwd, 'package.json'), 'utf8'));
  if (scripts[name] === undefined) throw new Error(`${options.cwd} has no script ${name}`);
  const PATH = [join(options.cwd, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  return ['sh', ['-c', `${scripts[name]} "$@"`, name, ...args], { ...options, env: { ...env, PATH } }];
}

/** Runs a script to its end. @returns {Promise<string>} what it printed. Rejects with that if it fails */
export async function runScript(name, options) {
  return succeed(...(await scriptOf(name, options)));
}
