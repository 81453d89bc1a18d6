/**
 * Writes to Redis under a fencing token. It needs no Nest: a worker that only writes can import it alone.
 *
 * @module nestjs-redis-lock/fence
 */
export { fence, type FenceGuard } from './redis/fence/fence.js';
export type { FencedCommand } from './redis/fence/fenced-commands.js';
export { FencedCommandError, StaleFencingTokenError } from './core/api/lease-errors.js';
