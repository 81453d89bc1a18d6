// npm run check                format, lint, types, and the tests of the rooms that you have changed: before each commit
// npm run check -- --static    without the tests
// npm run check -- --all       format, lint and types of all files, also by the rules that need types: what CI runs
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { changedFiles, grownRooms } from './changed.mjs';
import { runCommand } from './command.mjs';
import { jest, LONG, SLOW } from './jest.mjs';
import { root, setUpPackages } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';
import { ensureRedis } from './setup/redis.mjs';

const { static: isStatic, all: isAll } = parseArgs({
  options: { static: { type: 'boolean' }, all: { type: 'boolean' } },
}).values;

await runCommand(async () => {
  await setUpPackages();
  const lint = isAll ? ['lint'] : ['lint', '--', '--changed'];
  const passed = await Promise.all([passes('format:check'), passes(...lint), passes('typecheck')]);
  if (!isStatic && !isAll) passed.push(await testsPass(), staysInProportion());
  return passed.includes(false) ? 1 : 0;
});

/** Runs a script of package.json, and prints what it printed once it has ended: three at once would not be readable. */
async function passes(...script) {
  // The compiler and the rules that need types are Go programs, which spend a quarter of their time on garbage otherwise.
  const env = { GOGC: 'off', GOMEMLIMIT: '3GiB', ...process.env };
  const child = spawn('npm', ['run', '--silent', ...script], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  console.log(`=== ${script.join(' ')}: ${code === 0 ? 'passed' : 'FAILED'}\n${out}${err}`);
  return code === 0;
}

async function testsPass() {
  const rooms = [...new Set(changedFiles().flatMap((file) => testsOf(file) ?? []))];
  if (rooms.length === 0) return true;
  const patterns = ['--testPathIgnorePatterns', LONG, SLOW, '--selectProjects', 'unit', 'nest', 'docs'];
  const env = { ...process.env, TEST_SPEED: 'check', ...environmentOf(await ensureRedis({ ownServer: true })) };
  return (await jest(['--passWithNoTests', ...patterns, '--testPathPatterns', ...rooms], env)) === 0;
}

/** Prints which rooms grow, and fails if a large one does by more than a tenth: then it should become two. */
function staysInProportion() {
  const grown = grownRooms();
  for (const { room, before, now } of grown) console.log(`${room} grows by ${now - before} lines to ${now}.`);
  return !grown.some(({ before, now }) => before > 1_000 && now > 1.1 * before);
}

/**
 * Returns a pattern for the tests of a file: itself, if it is one, otherwise the tests in the same folder under test/.
 */
function testsOf(file) {
  if (file.endsWith('.test.ts')) return `/${file}$`;
  let folder = dirname(file).replace(/^lib\b/, 'test');
  while (/^test\/./.test(folder) && !existsSync(join(root, folder))) folder = dirname(folder);
  // A file that lies in test/kernel, and not deeper, is of no room in there.
  return folder.split('/').length > 2 ? `/${folder}/` : /^test\/./.test(folder) ? `/${folder}/[^/]+$` : undefined;
}
