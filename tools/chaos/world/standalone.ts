import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { ChaosServer } from './server.js';

/** One Redis, with a network in front of it for each worker. */
export function standalone(redis: ChaosRedis): ChaosServer {
  return {
    ports: [redis.port],
    admins: [redis.admin],
    optionsAt: ([port = redis.port] = []) => ({ connection: redis.urlAt(port) }),
  };
}
