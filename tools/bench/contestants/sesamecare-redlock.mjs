import { Redis } from 'ioredis';
import { Redlock } from '@sesamecare-oss/redlock';

export async function connect(url, { retryMs = 200 } = {}) {
  const redis = new Redis(url);
  const redlock = new Redlock([redis], { retryCount: -1, retryDelay: retryMs, retryJitter: Math.ceil(retryMs / 2) });
  return {
    acquire: (resource) => redlock.acquire([resource], 30_000),
    release: (lock) => lock.release(),
    close: () => redis.disconnect(),
  };
}
