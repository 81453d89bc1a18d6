import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { ChaosServer } from './server.js';

/** One Redis, with a network in front of it for each worker. */
export function standalone(redis: ChaosRedis): ChaosServer {
  return { port: redis.port, admin: redis.admin, connectionAt: (port = redis.port) => redis.urlAt(port) };
}
