// The code of a careful developer without a library.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

export async function connect(url) {
  const redis = new Redis(url);
  const sha = await redis.script('LOAD', RELEASE);
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
