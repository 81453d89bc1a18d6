// The floor: one round trip, and no lock.
import { Redis } from 'ioredis';

export async function connect(url) {
  const redis = new Redis(url);
  return { acquire: () => redis.ping(), release: undefined, close: () => redis.disconnect() };
}
