import { Redis } from 'ioredis';
import { createLock, IoredisAdapter } from 'redlock-universal';

export async function connect(url, { retryMs = 100, asShipped = false } = {}) {
  const redis = new Redis(url);
  const adapter = new IoredisAdapter(redis);
  const patient = { ttl: 30_000, retryAttempts: 1_000_000, retryDelay: retryMs, performance: 'lean' };
  const settings = { adapter, ...(asShipped ? {} : patient) };
  const locks = new Map();
  const lockOf = (key) => {
    if (!locks.has(key)) locks.set(key, createLock({ ...settings, key }));
    return locks.get(key);
  };
  return {
    async acquire(resource) {
      const lock = lockOf(resource);
      return { lock, handle: await lock.acquire() };
    },
    release: ({ lock, handle }) => lock.release(handle),
    close: () => redis.disconnect(),
  };
}
