/**
 * The locks in a health check of `@nestjs/terminus`. Needs that package.
 *
 * @module nestjs-redis-lock/health
 */
export { RedisLockHealth, type RedisLockHealthOptions } from './health/redis-lock-health.js';
