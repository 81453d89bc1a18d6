import type { Redis } from 'ioredis';
import { replyCode } from './failures.js';
import type { Script } from './scripts/script.js';

/**
 * Runs scripts by their hash, and by their text when Redis does not know the hash (a new server, or SCRIPT FLUSH): that
 * loads them too. Not `defineCommand`: it changes the client, and recovers a lost script only where it has sent it before.
 */
export async function runScript(
  client: Redis,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || replyCode(error.message) !== 'NOSCRIPT') throw error;
    return client.eval(script.lua, keys.length, ...keys, ...args);
  }
}
