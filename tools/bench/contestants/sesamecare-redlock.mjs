import { Redis } from 'ioredis';
import { Redlock } from '@sesamecare-oss/redlock';

export async function connect(url, { retryMs = 200, asShipped = false } = {}) {
  const redis = new Redis(url);
  const patient = { retryCount: -1, retryDelay: retryMs, retryJitter: Math.ceil(retryMs / 2) };
  const redlock = new Redlock([redis], asShipped ? {} : patient);
  // Required in each call. Its README uses 5 s.
  const leaseMs = asShipped ? 5_000 : 30_000;
  return {
    acquire: (resource) => redlock.acquire([resource], leaseMs),
    release: (lock) => lock.release(),
    close: () => redis.disconnect(),
  };
}
