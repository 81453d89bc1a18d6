// Step 1 of the set-up: the npm packages are those of package-lock.json.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runStep, say } from './step.mjs';

export async function ensurePackages(root) {
  const state = await packagesState(root);
  if (state === 'current') return say('  npm packages: up to date');
  // Without install scripts: no dependency needs one.
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await runStep(`Installing npm packages (they are ${state})`, 'npm', args, { cwd: root });
}

/**
 * Compares the lock file with the one npm keeps of what it installed, so that a package installed by hand counts and
 * a touched file does not.
 * @returns {Promise<'current' | 'missing' | 'stale'>}
 */
export async function packagesState(root) {
  const installed = await readPackages(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return 'missing';
  const { '': _project, ...wanted } = (await readPackages(join(root, 'package-lock.json'))) ?? {};
  const isCurrent = Object.entries(wanted).every(([path, { version, optional, peer }]) => {
    const found = installed[path];
    // An optional package may be absent: most are binaries for other platforms.
    return found === undefined ? optional === true || peer === true : found.version === version;
  });
  return isCurrent && Object.keys(installed).every((path) => path in wanted) ? 'current' : 'stale';
}

async function readPackages(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
