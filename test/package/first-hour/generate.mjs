import assert from 'node:assert/strict';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { succeed } from '../program.mjs';

export const NEST = 'node_modules/@nestjs/cli/bin/nest.js';

/** Packages of the CLI for the style of the code: slow to install, and not needed by any step. */
const OF_STYLE = /eslint|prettier|oxlint|globals|coverage|^@nestjs\/mau$|^ts-node$|^ts-loader$|^source-map-support$/;

/** Makes the application by `nest new`. Its packages are installed already, as the lock file of the consumer has them. */
export async function generateApplication({ name, folder }) {
  const args = ['new', 'generated', '--skip-install', '--skip-git', '--package-manager', 'npm'];
  await succeed(process.execPath, [NEST, ...args], { cwd: folder });
  const generated = await readManifest(join(folder, 'generated'));
  const installed = await readManifest(folder);
  for (const kind of ['dependencies', 'devDependencies']) {
    const wanted = Object.entries(generated[kind]).filter(([dependency]) => !OF_STYLE.test(dependency));
    const kept = Object.fromEntries(wanted.map(([dependency]) => [dependency, installed[kind][dependency]]));
    assert.deepEqual(kept, Object.fromEntries(wanted), `consumers/${name}/package.json is not what the CLI generates`);
  }
  const { dependencies, devDependencies } = installed;
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...generated, dependencies, devDependencies }));
  await rm(join(folder, 'generated/package.json'));
  await cp(join(folder, 'generated'), folder, { recursive: true });
  await rm(join(folder, 'generated'), { recursive: true });
}

async function readManifest(folder) {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
}
