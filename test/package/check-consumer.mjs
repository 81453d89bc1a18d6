import { copyFile, cp, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../scripts/setup.mjs';
import { currentOnes } from '../../scripts/setup/packages.mjs';
import { sharePackages } from '../../scripts/setup/shared-packages.mjs';
import { compileWithoutErrors } from './compile.mjs';
import { checkConsoles } from './console.mjs';
import { firstHour } from './first-hour/first-hour.mjs';
import { addPackage, npm, runScript, scriptOf, writeAddresses } from './npm.mjs';
import { succeed } from './program.mjs';
import { forNodeTest, runTestingPage, writeTogether } from './testing-page.mjs';

/**
 * One fresh project: does its steps, one after the other, until one fails.
 *
 * @returns {Promise<{ step: string, error: unknown } | undefined>} what has failed
 */
export async function checkConsumer(
  { name, parts, isApplication = false, hasTestingPage = false, hasConsoles = false, asksNpx = false },
  run,
) {
  const { folder, tarball, manifest, redisUrl, database } = run;
  const prepare = async () => {
    for (const part of [...parts, name]) await copy(part, folder);
    await writeAddresses(folder);
    if (!isApplication) await addPackage({ folder, tarball, manifest });
    sharePackages(folder, await currentOnes(await others(folder)));
    if (hasTestingPage) {
      // As files of their own in Jest: the application for Nest 11.
      await writeTogether({ into: join(folder, 'test/testing'), all: 'all.test.ts' });
      await writeTogether({ into: join(folder, 'test/node-test'), all: 'all.ts', asWritten: forNodeTest });
    }
    // The same source in both formats: nothing else would show that both have the same types.
    if (hasConsoles) await copyFile(join(folder, 'src/consoles.ts'), join(folder, 'src/consoles.mts'));
  };
  const consumer = { name, folder, tarball, redisUrl, database, asksNpx };
  const steps = isApplication
    ? firstHour(consumer)
    : {
        ...compileAndTest(consumer),
        ...(hasConsoles && consoles(consumer)),
        ...(hasTestingPage && testingPage(consumer)),
      };
  for (const [step, doStep] of Object.entries({ prepare, ...steps })) {
    const startedAt = Date.now();
    const failure = await doStep().then(
      () => undefined,
      (error) => ({ step, error }),
    );
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`  ${name}: ${step} ${failure === undefined ? 'passed' : 'FAILED'} (${seconds} s)`);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/** Installs the packages, compiles the project (which checks the types), runs it. */
function compileAndTest({ name, folder, redisUrl, database, asksNpx }) {
  // Of its own, because all of these have the usual prefix, and jobs with the same names.
  const env = { REDIS_URL: `${redisUrl}/${database}` };
  return {
    install: () => npm(['install', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder }),
    compile: () => compileWithoutErrors(folder),
    test: () => runScript('test', { cwd: folder, env }),
    'command line': () => commandLine({ folder, name, redisUrl, asksNpx }),
  };
}

const HAS_TOKEN = 'process.exitCode = Number(process.env.LOCK_FENCING_TOKEN) > 0 ? 0 : 1';

/** The program of the package, as a user starts it. npx finds the same file in each project. */
async function commandLine({ folder, name, redisUrl, asksNpx }) {
  const env = { REDIS_URL: redisUrl };
  const run = (...args) => succeed('node_modules/.bin/nestjs-redis-lock', args, { cwd: folder, env });
  const byNpx = (...args) => succeed('npx', ['--no-install', 'nestjs-redis-lock', ...args], { cwd: folder, env });
  const [help, listed] = await Promise.all([
    asksNpx ? byNpx('--help') : run('--help'),
    run('ls', '--prefix', name, '--json'),
    run('exec', 'migrate', '--prefix', name, '--', 'node', '-e', HAS_TOKEN),
  ]);
  if (!help.includes('Usage: nestjs-redis-lock <command>')) throw new Error(help);
  if (JSON.parse(listed).schemaVersion !== 1) throw new Error(listed);
}

function consoles({ folder }) {
  const formats = ['dist/consoles.js', 'dist/consoles.mjs'];
  return { console: () => Promise.all(formats.map((program) => checkConsoles(program, folder))) };
}

/** Its scripts `test:page` and `test:node`. */
function testingPage({ folder }) {
  return {
    'testing page, Jest': () => scriptOf('test:page', { cwd: folder }).then(runTestingPage),
    'testing page, node:test': () => scriptOf('test:node', { cwd: folder }).then(runTestingPage),
  };
}

/** Other projects that may have packages: this one, its stacks, and earlier consumers. */
async function others(folder) {
  const foldersIn = async (parent) => {
    const entries = await readdir(parent, { withFileTypes: true });
    return entries.filter((each) => each.isDirectory()).map((each) => join(parent, each.name));
  };
  const groups = await Promise.all([join(root, 'test/stacks'), dirname(folder)].map(foldersIn));
  return [root, ...groups.flat().filter((each) => each !== folder)];
}

async function copy(name, folder) {
  await cp(fileURLToPath(new URL(`consumers/${name}`, import.meta.url)), folder, { recursive: true });
}
