/**
 * For one release: takes the locks of another library too, by the option `alsoLock`.
 *
 * @module nestjs-redis-lock/migration
 */
export {
  murlock,
  type MurlockOptions,
  redlock,
  type RedlockOptions,
  redisSemaphore,
  type RedisSemaphoreOptions,
} from './migration/key-lock.js';
export { redisson, type RedissonOptions } from './migration/redisson.js';
export { setNx, type SetNxOptions } from './migration/set-nx.js';

// The lock of a library that is not here
export type {
  ForeignClaim,
  ForeignClient,
  ForeignContext,
  ForeignLock,
  ForeignReply,
} from './core/api/foreign-lock.js';
