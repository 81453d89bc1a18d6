/**
 * The locks in a health check of `@nestjs/terminus`. Needs that package.
 *
 * @module nestjs-redis-lock/health
 */
export { RedisLockHealth, type RedisLockHealthOptions } from './features/fleet/nest/redis-lock-health.js';
