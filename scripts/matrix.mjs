// npm run matrix -- <server>... [--node <path>]... [-- <tests>]   Runs the tests of Redis on each server and each Node.
//   A server is the path of a redis-server (or valkey-server, dragonfly), or an image of Docker. Tests: default
//   test/stores and test/redis. Prints a line for each combination, and fails if one of them has failed.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './setup.mjs';

const split = process.argv.indexOf('--', 2);
const own = process.argv.slice(2, split < 0 ? undefined : split);
const tests = split < 0 ? ['test/stores', 'test/redis'] : process.argv.slice(split + 1);
const { positionals: servers, values } = parseArgs({
  args: own,
  options: { node: { type: 'string', multiple: true } },
  allowPositionals: true,
});
if (servers.length === 0) {
  console.error('Usage: npm run matrix -- <redis-server or image>... [--node <path>]... [-- <tests>]');
  process.exit(2);
}

const results = (values.node ?? [process.execPath]).flatMap((node) => servers.map((server) => runOn(node, server)));
console.log(results.map(({ name, outcome }) => `${outcome}  ${name}`).join('\n'));
process.exitCode = results.every(({ outcome }) => outcome === 'passed') ? 0 : 1;

/**
 * @param {string} node
 * @param {string} server
 */
function runOn(node, server) {
  const isProgram = existsSync(server);
  const env = {
    ...process.env,
    // Programs that the tests start find this Node, too.
    PATH: `${dirname(node)}${delimiter}${process.env.PATH}`,
    // Each variable is set or removed: one from outside would run the tests on another server than the report names.
    REDIS_SERVER_BIN: isProgram ? server : undefined,
    REDIS_SERVER_IMAGE: isProgram ? undefined : server,
  };
  // An image is named by its version. A program may be of any.
  const name = `Node ${versionOf(node)}, ${server}${isProgram ? ` ${versionOf(server)}` : ''}`;
  console.log(`\n== ${name}`);
  const { status } = spawnSync(node, ['scripts/test.mjs', 'test', ...tests], { cwd: root, env, stdio: 'inherit' });
  return { name, outcome: status === 0 ? 'passed' : 'FAILED' };
}

/** @param {string} program */
function versionOf(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return /\d+\.\d+[\w.]*/.exec(stdout ?? '')?.[0] ?? `of unknown version (${program})`;
}
