// The code of a careful developer without a library, with a fencing token: our guarantee, without the queue.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

const ACQUIRE = `if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return redis.call('INCR', KEYS[2]) end return 0`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const FENCE = 'raw-fenced:fence';

export async function connect(url) {
  const redis = new Redis(url);
  const [toAcquire, toRelease] = await Promise.all([ACQUIRE, RELEASE].map((script) => redis.script('LOAD', script)));
  return {
    async acquire(resource) {
      const key = `raw-fenced:${resource}`;
      const value = randomUUID();
      const token = await redis.evalsha(toAcquire, 2, key, FENCE, value, 30_000);
      if (token === 0) throw new Error(`${resource} is busy`);
      return { key, value, token };
    },
    release: ({ key, value }) => redis.evalsha(toRelease, 1, key, value),
    close: () => redis.disconnect(),
  };
}
