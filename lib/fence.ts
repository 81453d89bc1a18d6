/**
 * Writes under a fencing token: to Redis, or in a transaction of a SQL database. It needs no Nest: a worker that only
 * writes can import it alone.
 *
 * @module nestjs-redis-lock/fence
 */
export { FencedCommandError, StaleFencingTokenError } from './features/fence/core/fence-errors.js';
export { fence } from './features/fence/redis/either-fence.js';
export type { FenceGuard } from './features/fence/redis/fence.js';
export type { FencedCommand } from './features/fence/redis/fenced-commands.js';
export type { FenceTransaction } from './features/fence/sql/adapters.js';
