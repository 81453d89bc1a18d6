import Redlock from 'redlock';
import { openServers } from './servers.mjs';

export async function connect(url, { retryMs = 200, ...where } = {}) {
  const servers = openServers(url, where);
  const redlock = new Redlock(servers, { retryCount: -1, retryDelay: retryMs, retryJitter: Math.ceil(retryMs / 2) });
  return {
    acquire: (resource) => redlock.acquire([resource], 30_000),
    acquireAll: (resources) => redlock.acquire(resources, 30_000),
    release: (lock) => lock.release(),
    close: () => servers.forEach((redis) => redis.disconnect()),
  };
}
