// Makes a bare clone ready: npm packages, build, Redis. Needs nothing but Node, because it runs before `npm ci` has.
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from './setup/dist.mjs';
import { ensurePackages } from './setup/packages.mjs';
import { ensureRedis } from './setup/redis.mjs';
import { SetupError } from './setup/setup-error.mjs';
import { say } from './setup/step.mjs';

const OLDEST_NODE = [20, 19];

export const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * @param {object} options
 * @param {boolean} options.ownServer whether the caller needs a server it may pause and kill (never REDIS_URL)
 * @param {boolean} [options.needsBuild] whether the caller uses dist/
 * @returns {Promise<import('./setup/find-redis.mjs').RedisSource>}
 */
export async function setUp({ ownServer, needsBuild = true }) {
  await setUpPackages();
  if (needsBuild) await ensureBuilt(root);
  return ensureRedis({ ownServer });
}

/** Installs the packages. Enough if nothing is built and no server is started. */
export async function setUpPackages() {
  say('Setting up');
  checkNode();
  await ensurePackages(root);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new SetupError(`Node ${OLDEST_NODE.join('.')} or later is needed; this is ${process.versions.node}`);
  }
}
