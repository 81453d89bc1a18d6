import { defineScript } from './script.js';
import { CLOCK, HOLDER } from './shared.js';

/**
 * Reads everything there is to know about a resource at one moment. Changes nothing.
 *
 * KEYS  1 lock, 2 waiters
 * Reply [holder, fencing token, depth, mode, TTL in milliseconds, [waiting instances]]; the first four are empty strings
 *       when the lock is free
 */
export const INSPECT = defineScript(
  'inspect',
  CLOCK,
  HOLDER,
  `
local holder, token, depth, mode = readHolder(KEYS[1])
local waiters = redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf')
if not holder then return { '', '', '', '', 0, waiters } end
return { holder, token, depth, mode, redis.call('PTTL', KEYS[1]), waiters }
`,
);
