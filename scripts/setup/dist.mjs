// Step 2 of the set-up: builds dist/ if its sources are newer.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { runStep, say } from './step.mjs';

const SOURCES = [
  'lib',
  'package.json',
  'tsconfig.json',
  'tsconfig.esm.json',
  'tools/package/build.mjs',
  'scripts/entry-points.mjs',
];
// The build writes these two last.
const OUTPUTS = ['dist/esm/package.json', 'dist/cjs/package.json'];

export async function ensureBuilt(root) {
  if (!(await isBuildStale(root))) return say('  build: up to date');
  await runStep('Building dist/', process.execPath, [join(root, 'tools/package/build.mjs')], { cwd: root });
}

/** @returns {Promise<boolean>} */
export async function isBuildStale(root) {
  const builtAt = await Promise.all(OUTPUTS.map((file) => modifiedAt(join(root, file))));
  const changedAt = await Promise.all(SOURCES.map((path) => newestIn(join(root, path))));
  return Math.min(...builtAt) < Math.max(...changedAt);
}

/** Directories count as well: a deleted file shows only there. */
async function newestIn(path) {
  const entries = await readdir(path, { recursive: true }).catch(() => []);
  const times = await Promise.all([path, ...entries.map((entry) => join(path, entry))].map(modifiedAt));
  return Math.max(...times);
}

async function modifiedAt(path) {
  const stats = await stat(path).catch(() => undefined);
  return stats?.mtimeMs ?? 0;
}
