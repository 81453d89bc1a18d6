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

/** @param {{ testPathPatterns: { patterns: string[] } }} config of Jest. No pattern: every test runs */
export default async function install({ testPathPatterns }) {
  await ensureBuilt(root);
  const waiting = await stacksOf(testPathPatterns.patterns);
  const work = async () => {
    for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
      await ensurePackages(folder);
      await generateSources(folder);
      await putPackageInto(folder);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The stacks with a test that will run. All of them, where a test will run that belongs to none: it looks at all. */
async function stacksOf(patterns) {
  const stacks = [];
  for (const { name, isDirectory } of await entriesOf(import.meta.dirname)) {
    const folder = join(import.meta.dirname, name);
    if (isDirectory && existsSync(join(folder, 'package.json'))) stacks.push({ folder, tests: await testsIn(folder) });
  }
  const forAll = await testsIn(import.meta.dirname);
  const runs = (tests) =>
    tests.some((test) => patterns.length === 0 || patterns.some((it) => new RegExp(it).test(test)));
  return stacks.filter(({ tests }) => runs(forAll) || runs(tests)).map(({ folder }) => folder);
}

async function testsIn(folder) {
  const names = (await entriesOf(folder)).map(({ name }) => name);
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(folder, name));
}

async function entriesOf(folder) {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
}

/** Runs the script `generate` of a stack, whose sources import what it writes to `generated/`. */
async function generateSources(folder) {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  if (!scripts?.generate || existsSync(join(folder, 'generated'))) return;
  await runStep('Generating sources', 'npm', ['run', '--silent', 'generate'], { cwd: folder });
}

/** A copy, not a link: what the package imports is then looked for in the stack first, and may be another Nest. */
async function putPackageInto(folder) {
  const place = join(folder, 'node_modules/nestjs-redis-lock');
  await rm(place, { recursive: true, force: true });
  for (const part of ['package.json', 'dist']) await cp(join(root, part), join(place, part), { recursive: true });
}
