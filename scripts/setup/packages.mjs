// Step 1 of the set-up: installs the npm packages of package-lock.json.
import { join } from 'node:path';
import { installedIn, packagesOf, sharePackages } from './shared-packages.mjs';
import { runStep, say } from './step.mjs';

/**
 * Without install scripts: no dependency needs one. What a lock file names does not change, so npm need not ask whether what it keeps
 * of that is still right.
 */
const ARGS = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
/** The packages of the lock file, whatever is there. */
export const NPM_CI = ['ci', ...ARGS];

/** @param {readonly string[]} [others] folders whose packages may be shared: see {@link sharePackages} */
export async function ensurePackages(root, others = []) {
  const state = await packagesState(root);
  if (state === 'current') return say('  npm packages: up to date');
  if (state === 'missing' && others.length > 0) {
    if (sharePackages(root, await currentOnes(others))) return say('  npm packages: shared');
    const args = ['install', '--no-save', ...ARGS];
    return runStep('Installing npm packages (the others are shared)', 'npm', args, { cwd: root });
  }
  await runStep(`Installing npm packages (they are ${state})`, 'npm', NPM_CI, { cwd: root });
}

/** Returns the folders whose packages are installed, except while npm is working on them. */
export async function currentOnes(folders) {
  const states = await Promise.all(folders.map((folder) => packagesState(folder)));
  return folders.filter((_folder, index) => states[index] === 'current');
}

/**
 * Compares the lock file with the one npm keeps of what it installed, so that a package installed by hand counts and
 * a touched file does not.
 * @returns {Promise<'current' | 'missing' | 'stale'>}
 */
export async function packagesState(root) {
  const installed = installedIn(root);
  if (installed === undefined) return 'missing';
  const locked = packagesOf(join(root, 'package-lock.json'));
  if (locked === undefined) return 'stale';
  const { '': _project, ...wanted } = locked;
  const isCurrent = Object.entries(wanted).every(([path, { version, optional, peer }]) => {
    const found = installed[path];
    // An optional package may be absent: most are binaries for other platforms.
    return found === undefined ? optional === true || peer === true : found.version === version;
  });
  return isCurrent && Object.keys(installed).every((path) => path in wanted) ? 'current' : 'stale';
}
