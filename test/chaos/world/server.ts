import type { Redis } from 'ioredis';
import type { RedisLockModuleOptions } from 'nestjs-redis-lock';

/** A Redis, or several that stand for one, that the workers of a world lock by. */
export interface ChaosServer {
  /** The port of the Redis that a network is put in front of; absent where the workers find Redis by themselves. */
  readonly port?: number;
  /** How to reach it: directly, or through the network at a port. As the user that has no more rights than it needs. */
  connectionAt(port?: number): RedisLockModuleOptions['connection'];
  /** A client with all rights, that survives faults. */
  readonly admin: Redis;
}
