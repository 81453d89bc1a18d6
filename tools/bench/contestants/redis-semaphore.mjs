import { Redis } from 'ioredis';
import { Mutex, Semaphore } from 'redis-semaphore';

export async function connect(url, { retryMs = 10 } = {}) {
  const redis = new Redis(url);
  const options = { lockTimeout: 30_000, acquireTimeout: 60_000, retryInterval: retryMs, refreshInterval: 0 };
  const acquired = async (lock) => {
    await lock.acquire();
    return lock;
  };
  const release = (lock) => lock.release();
  return {
    acquire: (resource) => acquired(new Mutex(redis, resource, options)),
    semaphore: (permits) => ({
      acquire: (resource) => acquired(new Semaphore(redis, resource, permits, options)),
      release,
    }),
    release,
    close: () => redis.disconnect(),
  };
}
