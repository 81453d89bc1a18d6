// What a careful developer writes without a library, on several servers.
import { randomUUID } from 'node:crypto';
import { majority } from './quorum-of.mjs';
import { loadScript, openServers } from './servers.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

export async function connect(url, where = {}) {
  const servers = openServers(url, where);
  const sha = await loadScript(servers, RELEASE);
  const take = async (redis, key, value) => {
    if ((await redis.set(key, value, 'PX', 30_000, 'NX')) !== 'OK') throw new Error(`${key} is busy`);
  };
  return {
    async acquire(resource) {
      const key = `raw:${resource}`;
      const value = randomUUID();
      await majority(servers.map((redis) => take(redis, key, value)));
      return { key, value };
    },
    release: ({ key, value }) => majority(servers.map((redis) => redis.evalsha(sha, 1, key, value))),
    close: () => servers.forEach((redis) => redis.disconnect()),
  };
}
