import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { succeed } from './program.mjs';

/** npm uses another registry if one is configured. */
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
  await change(join(folder, 'package-lock.json'), ({ packages }) => {
    for (const [path, entry] of Object.entries(packages)) {
      const { name = path.split('node_modules/').at(-1), version, integrity } = entry;
      if (integrity !== undefined) entry.resolved ??= `${REGISTRY}/${name}/-/${name.split('/').at(-1)}-${version}.tgz`;
    }
  });
}

/**
 * Adds the packed package to the dependencies of a project, and to its lock file, as `npm install <tarball>` does. That asks the registry
 * for all versions of each peer, which takes as long as all the rest. npm checks the peers of what a lock file names, too.
 */
export async function addPackage({ folder, tarball, manifest }) {
  const specs = { [manifest.name]: `file:${tarball}` };
  const { version, bin, engines, peerDependencies, peerDependenciesMeta } = manifest;
  const entry = { version, resolved: specs[manifest.name], bin, engines, peerDependencies, peerDependenciesMeta };
  await change(join(folder, 'package.json'), ({ dependencies }) => Object.assign(dependencies, specs));
  await change(join(folder, 'package-lock.json'), ({ packages }) => {
    Object.assign(packages[''].dependencies, specs);
    packages[`node_modules/${manifest.name}`] = entry;
  });
}

async function change(file, make) {
  const content = JSON.parse(await readFile(file, 'utf8'));
  make(content);
  await writeFile(file, JSON.stringify(content));
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
