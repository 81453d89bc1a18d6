import { createLock, createRedlock, IoredisAdapter, LockManager } from 'redlock-universal';
import { openServers } from './servers.mjs';

export async function connect(url, { retryMs = 100, ...where } = {}) {
  const servers = openServers(url, where);
  const adapters = servers.map((redis) => new IoredisAdapter(redis));
  const settings = { ttl: 30_000, retryAttempts: 1_000_000, retryDelay: retryMs };
  const create = (key) =>
    servers.length === 1
      ? createLock({ ...settings, key, adapter: adapters[0], performance: 'lean' })
      : createRedlock({ ...settings, key, adapters });
  let manager;
  const managerOf = () =>
    (manager ??= new LockManager({
      nodes: adapters,
      defaultTTL: settings.ttl,
      defaultRetryAttempts: settings.retryAttempts,
      defaultRetryDelay: retryMs,
    }));
  const locks = new Map();
  const lockOf = (key) => {
    if (!locks.has(key)) locks.set(key, create(key));
    return locks.get(key);
  };
  return {
    async acquire(resource) {
      const lock = lockOf(resource);
      return { lock, handle: await lock.acquire() };
    },
    acquireAll: (resources) => managerOf().acquireBatch(resources),
    releaseAll: (handles) => managerOf().releaseBatch(handles),
    release: ({ lock, handle }) => lock.release(handle),
    close: () => servers.forEach((redis) => redis.disconnect()),
  };
}
