import { GRANT, QUEUE, RELEASING } from './queue.js';
import { defineScript } from './script.js';
import { CLOCK, FENCE, HOLDER, TAKE } from './shared.js';

/**
 * Frees the lock, if this owner has it, or grants it to the next waiter. Also how an acquisition is withdrawn: the contender
 * leaves the queue, and a lock it was granted and does not want any more goes to the next one.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner
 * Reply 1: it was the owner's. 0: not the owner; no lock was changed
 */
export const RELEASE = defineScript(
  'release',
  `
-- The owner's, and nobody waits: nearly always. A reentrant lock is no string, and goes the long way.
local text = redis.pcall('GET', KEYS[1])
if type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' '
    and redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.call('DEL', KEYS[1])
end
`,
  CLOCK,
  FENCE,
  TAKE,
  HOLDER,
  QUEUE,
  GRANT,
  RELEASING,
  `return releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1])`,
);
