// Once before the tests of this folder: installs the stacks that they need, and puts the built package into each.
import { cp, readdir, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { ensureBuilt } from '../../scripts/setup/dist.mjs';
import { runStep } from '../../scripts/setup/step.mjs';
import { ensurePackages } from '../../scripts/setup/packages.mjs';

/** npm waits for the network and for the disk. */
const AT_ONCE = 4;

/**
 * @param {{ runTestsByPath: boolean, nonFlagArgs: string[], testPathPatterns: { patterns: string[] } }} config of Jest: which tests
 *   run. No path and no pattern: all
 * @param {{ testPathIgnorePatterns: string[] }} project but for these
 */
export default async function install({ runTestsByPath, nonFlagArgs, testPathPatterns }, { testPathIgnorePatterns }) {
  await ensureBuilt(root);
  const patterns = runTestsByPath ? nonFlagArgs : testPathPatterns.patterns;
  const waiting = await stacksOf(patterns, testPathIgnorePatterns);
  const others = [root, ...(await look(import.meta.dirname)).folders];
  const work = async () => {
    for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
      await ensurePackages(folder, others);
      await generateSources(folder);
      await putPackageInto(folder);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The stacks with a test that will run; all of them, if one of the tests belongs to none, because it reads all. */
async function stacksOf(patterns, without) {
  const isAmong = (path) => (pattern) => new RegExp(pattern).test(path);
  const runs = (path) => (patterns.length === 0 || patterns.some(isAmong(path))) && !without.some(isAmong(path));
  const { folders, tests } = await look(import.meta.dirname);
  const wanted = await Promise.all(folders.map(async (folder) => (await testsIn(folder)).some(runs)));
  const areAll = tests.some(runs);
  return folders.filter((folder, index) => existsSync(join(folder, 'package.json')) && (areAll || wanted[index]));
}

async function testsIn(folder) {
  const { folders, tests } = await look(folder);
  return [...tests, ...(await Promise.all(folders.map(testsIn))).flat()];
}

async function look(folder) {
  const entries = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => name !== 'node_modules');
  const paths = (chosen) => chosen.map(({ name }) => join(folder, name));
  return {
    folders: paths(entries.filter((entry) => entry.isDirectory())),
    tests: paths(entries.filter(({ name }) => name.endsWith('.test.ts'))),
  };
}

/** Runs the script `generate` of a stack, whose sources import what it writes to `generated/`. */
async function generateSources(folder) {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  if (!scripts?.generate) return;
  await runStep('Generating sources', 'npm', ['run', '--silent', 'generate'], { cwd: folder });
}

/** A copy, not a link: what the package imports is then looked for in the stack first, and may be another Nest. */
async function putPackageInto(folder) {
  const place = join(folder, 'node_modules/nestjs-redis-lock');
  await rm(place, { recursive: true, force: true });
  for (const part of ['package.json', 'dist/esm', 'dist/cjs'])
    await cp(join(root, part), join(place, part), { recursive: true });
}
