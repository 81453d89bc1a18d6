import { defineScript } from './script.js';
import { CLOCK, FENCE, HOLDER, TAKE } from './shared.js';

/**
 * Takes the lock if it is free: expiry and fencing token with it, in one step, so a crash at any point leaves nothing that
 * does not expire.
 *
 * KEYS  1 lock, 2 waiters, 3 fence
 * ARGV  1 owner, 2 mode (exclusive | reentrant), 3 leaseMs, 4 the instance to wake later, or '' for none, 5 how long that
 *       instance may be silent before it is taken for dead, in milliseconds
 * Reply [1, fencing token]: granted, also when this owner has it already (the command was sent again; its TTL starts anew)
 *       [0, TTL of the holder in milliseconds]: busy
 */
export const ACQUIRE = defineScript(
  'acquire',
  CLOCK,
  FENCE,
  HOLDER,
  TAKE,
  `
-- Read before anything is written: whatever is wrong with this key must not leave a lock behind.
local isWaiting = ARGV[4] ~= '' and redis.call('ZSCORE', KEYS[2], ARGV[4])
local holder, token = readHolder(KEYS[1])
if holder and holder ~= ARGV[1] then
  if ARGV[4] ~= '' then
    redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[4])
    redis.call('PEXPIRE', KEYS[2], ARGV[5])
  end
  return { 0, holderTtl(KEYS[1]) }
end
if holder then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  token = tonumber(token)
else
  token = takeLock(KEYS[1], KEYS[3], ARGV[1], ARGV[2], ARGV[3])
end
if isWaiting then redis.call('ZREM', KEYS[2], ARGV[4]) end
return { 1, token }
`,
);
