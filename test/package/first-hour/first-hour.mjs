// The first hour of a new user: an application made by the Nest CLI, the packed package, and what README and docs say.
import assert from 'node:assert/strict';
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkConsoles } from '../console.mjs';
import { npm, runScript, scriptOf } from '../npm.mjs';
import { followPackedLinks } from '../links.mjs';
import { succeed } from '../program.mjs';
import { runTestingPage, withTimersOf, writeTestingPage } from '../testing-page.mjs';
import { checkEsbuild, checkWebpack } from './bundles.mjs';
import { generateApplication } from './generate.mjs';
import { installLibrary } from './library.mjs';
import { checkStarted } from './started.mjs';

const SOURCES = fileURLToPath(new URL('../consumers/first-hour', import.meta.url));
const CONSOLES = fileURLToPath(new URL('../consumers/cjs/src/consoles.ts', import.meta.url));

/** Jest and Vitest give up on a test after five seconds, and a busy machine takes longer. */
const PATIENT = '--testTimeout=60000';
/** Most of the time of a test file goes to loading Nest. Vitest loads it once for all of them. */
const inOneProcess = (isEsm) => (isEsm ? ['--no-file-parallelism', '--no-isolate'] : ['--runInBand']);

/** The steps of a consumer called nest<major>-cli. */
export function firstHour({ name, folder, tarball, redisUrl }) {
  const major = Number(/\d+/.exec(name)[0]);
  const isEsm = major > 11;
  const application = { name, folder, major, isEsm, env: { REDIS_URL: redisUrl, KEY_PREFIX: name } };
  const inMemory = { ...application.env, REDIS_URL: 'memory:' };
  const endToEnd = (env) => runScript('test:e2e', { args: [PATIENT, ...inOneProcess(isEsm)], cwd: folder, env });
  return {
    install: () => install(application, tarball),
    'docs links': () => checkLinks(application),
    'nest new': () => generateApplication(application),
    write: () => writeSources(application),
    'nest start': () => checkStarted(application, 'tsc'),
    ...(!isEsm && { console: () => checkConsolesOf(application) }),
    'nest start, swc': () => checkStarted(application, 'swc'),
    'two copies': () => checkCopies(application),
    e2e: () => endToEnd(application.env),
    // The testing page is in memory, too.
    ...(isEsm && { 'e2e, memory': () => endToEnd(inMemory) }),
    'testing page': () => checkTestingPage(application),
    'bundle, esbuild': () => checkEsbuild(application),
    // The CLI of Nest 12 comes without webpack. Last, because webpack leaves one file of all that was built.
    ...(!isEsm && { 'nest start, webpack': () => checkWebpack(application) }),
  };
}

/** As README says, with the versions of the lock file. */
async function install({ folder, major }, tarball) {
  const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
  const named = installedByReadme(readme, major);
  const { packages } = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8'));
  const specs = named.map(([dependency, wanted]) => {
    if (dependency === 'nestjs-redis-lock') return tarball;
    const { version } = packages[`node_modules/${dependency}`];
    assert.ok(wanted === undefined || version.startsWith(`${wanted}.`), `README names ${dependency}@${wanted}`);
    return `${dependency}@${version}`;
  });
  const args = ['install', ...specs, '--prefer-offline', '--no-audit', '--no-fund'];
  const output = await npm(args, { cwd: folder });
  assert.doesNotMatch(output, /warn.*(nestjs-redis-lock|peer|ERESOLVE)/i, output);
}

/** @returns {[dependency: string, version: string | undefined][]} */
function installedByReadme(readme, major) {
  const commands = readme.match(/## Install\n\n```sh\n([^]*?)```/)[1].split('\n');
  return commands.flatMap((command) => {
    const [, given, comment = ''] = /^(?:npm install ([^#]*))?(?:# (.*))?$/.exec(command);
    const instead = new RegExp(`with Nest (?:\\d+ or )?${major}, (\\S+)`).exec(comment)?.[1];
    const names = instead ?? given ?? '';
    return names
      .split(' ')
      .filter((each) => each !== '')
      .map((each) => {
        const [, dependency, version] = /^(.[^@]*)(?:@(.*))?$/.exec(each);
        return [dependency, version];
      });
  });
}

async function checkLinks(application) {
  const { followed, broken } = followPackedLinks(await readInstalled(application));
  assert.deepEqual(broken, []);
  assert.ok(followed > 100, `${followed} links`);
}

async function readInstalled({ folder }) {
  const installed = join(folder, 'node_modules/nestjs-redis-lock');
  const entries = await readdir(installed, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, path, name }) => join(parentPath ?? path, name));
  const read = async (path) => [path.slice(installed.length + 1), await readFile(path, 'utf8')];
  return new Map(await Promise.all(paths.map(read)));
}

async function checkConsolesOf({ folder }) {
  await Promise.all(['dist/consoles.js', 'dist/consoles.mjs'].map((program) => checkConsoles(program, folder)));
}

async function checkCopies({ folder, env }) {
  const output = await succeed(process.execPath, ['dist/copies.js'], { cwd: folder, env });
  assert.match(output, /^both copies work$/m);
}

/** By the command and the configuration that the CLI generated: Vitest with Nest 12, Jest with CommonJS with Nest 11. */
async function checkTestingPage(application) {
  const { folder, isEsm } = application;
  const asWritten = (text) => writerOf(application)(isEsm ? withTimersOf('vitest', text) : text);
  await writeTestingPage({ into: join(folder, 'src/testing'), asWritten });
  await runTestingPage(await scriptOf('test', { args: ['src/testing', PATIENT, ...inOneProcess(isEsm)], cwd: folder }));
}

async function writeSources(application) {
  const { folder } = application;
  const asWritten = writerOf(application);
  for (const part of ['src', 'test']) {
    for (const file of await readdir(join(SOURCES, part))) {
      const text = await readFile(join(SOURCES, part, file), 'utf8');
      await writeFile(join(folder, part, file), asWritten(text));
    }
  }
  // Nest 12 has consumers of its own for it.
  if (!application.isEsm) {
    for (const format of ['ts', 'mts']) await copyFile(CONSOLES, join(folder, `src/consoles.${format}`));
  }
  await installLibrary(application, join(SOURCES, 'library'));
  const main = join(folder, 'src/main.ts');
  const text = await readFile(main, 'utf8');
  const hooked = text.replace('  await app.listen(', '  app.enableShutdownHooks();\n  await app.listen(');
  assert.notEqual(hooked, text);
  await writeFile(main, hooked);
}

/** Imports as the CLI writes them: without `.js` for Nest 11. */
function writerOf({ isEsm }) {
  return (text) => (isEsm ? text : text.replace(/from '(\.[^']*)\.js'/g, "from '$1'"));
}
