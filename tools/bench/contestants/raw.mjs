// What a careful developer writes without a library.
import { randomUUID } from 'node:crypto';
import { loadScript, openServers } from './servers.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

export async function connect(url, where = {}) {
  const [redis] = openServers(url, where);
  await redis.ping(); // a Cluster knows its nodes from then on
  const sha = await loadScript([redis], RELEASE);
  return {
    async acquire(resource) {
      const key = `raw:${resource}`;
      const value = randomUUID();
      const answer = await redis.set(key, value, 'PX', 30_000, 'NX');
      if (answer !== 'OK') throw new Error(`${resource} is busy`);
      return { key, value };
    },
    release: ({ key, value }) => redis.evalsha(sha, 1, key, value),
    close: () => redis.disconnect(),
  };
}
