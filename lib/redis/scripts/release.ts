import { defineScript } from './script.js';
import { CLOCK, HOLDER, WAKE } from './shared.js';

/**
 * Frees the lock, if this owner has it, and wakes the next waiter. Also how an acquisition is withdrawn: then the instance
 * leaves the waiters, and if it was woken for a lock that it does not want any more, the wake-up goes to the next one.
 *
 * KEYS  1 lock, 2 waiters
 * ARGV  1 owner, 2 the instance that stops waiting, or '', 3 what an inbox channel begins with, 4 the resource, encoded
 * Reply 1: freed. 0: not the owner; no lock was changed
 */
export const RELEASE = defineScript(
  'release',
  CLOCK,
  HOLDER,
  WAKE,
  `
if ARGV[2] ~= '' then redis.call('ZREM', KEYS[2], ARGV[2]) end
local holder = readHolder(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if holder then redis.call('DEL', KEYS[1]) end
wakeNext(KEYS[2], ARGV[3], ARGV[4])
return holder and 1 or 0
`,
);
