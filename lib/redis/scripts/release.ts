import { GRANTING, PASSED_ON, RELEASING } from './granting.js';
import { defineScript } from './script.js';
import { CLOCK } from './shared.js';

/**
 * Frees the lock, or the share of it, that this owner has, or grants it to those who are next. Also how an acquisition is
 * withdrawn: the contender leaves the queue, and a lock it was granted and does not want any more goes to the next one.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner, or '' to go on granting what another script has left
 * Reply 1: it was the owner's. 0: not the owner; no lock was changed. 3 and 2: the same, and whoever sent it has to go on granting
 */
export const RELEASE = defineScript(
  'release',
  `
-- The owner's, and nobody waits: nearly always. A lock of another mode is no string.
local text = redis.pcall('GET', KEYS[1])
if type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' '
    and redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.call('DEL', KEYS[1])
end
`,
  CLOCK,
  `
if type(text) == 'table' and redis.call('EXISTS', KEYS[2]) == 0 then
  local fields = redis.pcall('HMGET', KEYS[1], 'owner', ARGV[1], 'used', 'soonest')
  if fields[1] == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  -- A member, and nobody's lease is over: the others stay as they are.
  if fields[2] and fields[4] and tonumber(fields[4]) > now then
    local left = fields[3] - string.match(fields[2], '^%d+')
    if left == 0 then return redis.call('DEL', KEYS[1]) end
    redis.call('HDEL', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], 'used', left)
    return 1
  end
end
`,
  GRANTING,
  RELEASING,
  PASSED_ON,
  `return passedOn((releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], text)))`,
);
