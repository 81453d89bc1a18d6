/**
 * The console: a page of your own application that shows its locks, waits, jobs, leaders and instances.
 *
 * @module nestjs-redis-lock/console
 */
export { RedisLockConsoleModule } from './extras/console/nest/console.module.js';
export type { RedisLockConsoleOptions } from './extras/console/nest/console-options.js';
