import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { ChaosServer } from './server.js';

/** One Redis, with a network in front of it for each worker. @param options what it has to promise */
export function standalone(redis: ChaosRedis, options?: { restartQuarantineMs: number }): ChaosServer {
  return {
    ports: [redis.port],
    admins: [redis.admin],
    optionsAt: ([port = redis.port] = []) => ({ connection: redis.urlAt(port), ...options }),
  };
}
