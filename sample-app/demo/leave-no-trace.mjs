// @ts-check
import { Redis } from 'ioredis';

/** Removes the keys of this shop: with REDIS_URL the Redis belongs to the user. */
export async function leaveNoTrace(/** @type {string} */ redisUrl, /** @type {string} */ shop) {
  const redis = new Redis(redisUrl, { retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${shop}*`, 'COUNT', 1_000);
      if (keys.length > 0) await redis.unlink(...keys);
      cursor = next;
    } while (cursor !== '0');
  } catch {
    // It is gone itself.
  } finally {
    redis.disconnect();
  }
}
