// Finds a Redis without changing the machine, best source first.
import { answers, findOnPath } from './programs.mjs';

const DEFAULT_IMAGE = 'redis:8-alpine';

/**
 * @typedef {(
 *   { kind: 'url', url: string } | { kind: 'binary', path: string } | { kind: 'image', image: string }
 * )} RedisSource
 */

/** Returns the Redis from the environment variable, set by the person or by our own set-up. */
export function chosenRedis(env) {
  if (env.REDIS_SERVER_BIN) return { kind: 'binary', path: env.REDIS_SERVER_BIN };
  if (env.REDIS_SERVER_IMAGE) return { kind: 'image', image: env.REDIS_SERVER_IMAGE };
  return undefined;
}

/** The same choice, for the environment of a program that starts servers. */
export function environmentOf({ path, image }) {
  return path ? { REDIS_SERVER_BIN: path } : { REDIS_SERVER_IMAGE: image };
}

/** A server program on PATH. */
export async function installedRedis(env) {
  const path = (await findOnPath('redis-server', env)) ?? (await findOnPath('valkey-server', env));
  return path === undefined ? undefined : { kind: 'binary', path };
}

/** Docker counts only when its daemon answers: many machines have the client alone. */
export async function dockerRedis(env) {
  const isRunning = await answers('docker', ['info'], { env });
  return isRunning ? { kind: 'image', image: DEFAULT_IMAGE } : undefined;
}
