/**
 * Writes under a fencing token: to Redis, or in a transaction of a SQL database. It needs no Nest: a worker that only
 * writes can import it alone.
 *
 * @module nestjs-redis-lock/fence
 */
export { FencedCommandError, StaleFencingTokenError } from './core/api/lease-errors.js';
export { fence } from './redis/fence/either-fence.js';
export type { FenceGuard } from './redis/fence/fence.js';
export type { FencedCommand } from './redis/fence/fenced-commands.js';
export type { FenceTransaction } from './sql/adapters.js';
