// Step 3 of the set-up: a Redis to work with.
import { connect } from 'node:net';
import { chosenRedis, dockerRedis, installedRedis } from './find-redis.mjs';
import { installRedis } from './install-redis.mjs';
import { answers, isExecutable } from './programs.mjs';
import { SetupError } from './setup-error.mjs';
import { runStep, say } from './step.mjs';

/**
 * @param {object} options
 * @param {boolean} options.ownServer never REDIS_URL: the caller pauses, flushes and kills the server
 * @param {Record<string, string | undefined>} [options.env]
 * @returns {Promise<import('./find-redis.mjs').RedisSource>}
 */
export async function ensureRedis({ ownServer, env = process.env }) {
  if (env.REDIS_URL && !ownServer) {
    const url = await reachable(env.REDIS_URL);
    say(`  redis: REDIS_URL, ${new URL(url).host}`);
    return { kind: 'url', url };
  }
  if (env.REDIS_URL) say('  redis: REDIS_URL is left alone, the tests pause and kill their servers');

  const found = (await usable(chosenRedis(env), env)) ?? (await installedRedis(env));
  if (found !== undefined) return report(found);

  const obstacles = await installRedis(env);
  const installed = await installedRedis(env);
  if (installed !== undefined) return report(installed);

  const docker = await dockerRedis(env);
  if (docker === undefined) throw new SetupError(whatToDo(obstacles, ownServer));
  return report(await usable(docker, env));
}

/** A wrong path is better told now, and an image fetched now, than at the start of the first server. */
async function usable(source, env) {
  if (source?.kind === 'binary' && !(await isExecutable(source.path))) {
    throw new SetupError(`REDIS_SERVER_BIN: ${source.path} is not a program that can be run`);
  }
  if (source?.kind === 'image' && !(await answers('docker', ['image', 'inspect', source.image], { env }))) {
    await runStep(`Fetching the image ${source.image}`, 'docker', ['pull', '--quiet', source.image], { env });
  }
  return source;
}

function report(source) {
  say(`  redis: ${source.path ?? `${source.image} in Docker`}`);
  return source;
}

function whatToDo(obstacles, ownServer) {
  return [
    'There is no Redis here, and none could be installed:',
    '  - no redis-server or valkey-server on PATH',
    ...obstacles.map((obstacle) => `  - ${obstacle.trimEnd().replaceAll('\n', '\n    ')}`),
    '  - docker: no daemon answers',
    '',
    'Do one of these, and run the command again:',
    '  - Debian, Ubuntu:  sudo apt-get install redis-server',
    '  - macOS:           brew install redis',
    '  - any other:       start Docker, or set REDIS_SERVER_BIN to the path of a redis-server',
    ...(ownServer ? [] : ['  - use a Redis you have: set REDIS_URL=redis://host:6379']),
  ].join('\n');
}

/** A wrong REDIS_URL is better told now than by the first lock. Names the host only: a URL may hold a password. */
async function reachable(url) {
  const { hostname, port, protocol } = parse(url);
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  await new Promise((resolve, reject) => {
    const fail = (reason) => reject(new SetupError(`REDIS_URL: ${hostname}:${address.port} ${reason}`));
    if (!/^rediss?:$/.test(protocol)) return fail('is not a redis:// or rediss:// address');
    const socket = connect(address, () => socket.end(resolve));
    socket.setTimeout(5_000, () => socket.destroy(new Error('no answer within 5 s')));
    socket.on('error', (error) => fail(`cannot be reached (${error.code ?? error.message})`));
  });
  return url;
}

function parse(url) {
  if (!URL.canParse(url)) throw new SetupError('REDIS_URL is not a URL. It looks like redis://host:6379');
  return new URL(url);
}
