import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';

export async function connect(url, { retryMs = 10, asShipped = false } = {}) {
  const redis = new Redis(url);
  const patient = { lockTimeout: 30_000, acquireTimeout: 60_000, retryInterval: retryMs, refreshInterval: 0 };
  const options = asShipped ? undefined : patient;
  return {
    async acquire(resource) {
      const lock = new Mutex(redis, resource, options);
      await lock.acquire();
      return lock;
    },
    release: (lock) => lock.release(),
    close: () => redis.disconnect(),
  };
}
