import { scriptOf } from '../redis/script/script.js';
import { HELD } from './claim-replies.js';

/**
 * The scripts for a lock that is a hash with one field: its name says which thread of which application holds it, its
 * value how often that thread has entered it. An owner of ours is a thread that enters once. All of them may be executed
 * twice, or late. A run of a singleton job takes over from an earlier one, as with a key that is a string.
 */
export const REDISSON_ACQUIRE = scriptOf(
  'redissonAcquire',
  `
local ttl = redis.call('pttl', KEYS[1])
if ttl ~= -2 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  if ARGV[3] == '' then return ttl end
  local fields = redis.call('hkeys', KEYS[1])
  for _, field in ipairs(fields) do
    local isRun = string.sub(field, 1, #ARGV[3]) == ARGV[3]
    local token = isRun and tonumber(string.match(field, '^(%d+):', #ARGV[3] + 1))
    if not token then return ttl end
    if token >= tonumber(ARGV[4]) then return { ttl } end
  end
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('hdel', KEYS[1], unpack(fields))
  redis.call('pexpire', KEYS[1], math.max(ttl, ARGV[2]))
elseif ttl < tonumber(ARGV[2]) then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return ${HELD}
`,
);

/** Never makes the lease shorter: a renewal that comes late cuts nothing. */
export const REDISSON_RENEW = scriptOf(
  'redissonRenew',
  `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
`,
);

/**
 * Wakes the waiters. They hear it first, and ask when this script is over: where the user may not publish, nothing is
 * changed. On a cluster, Redisson listens for sharded messages since its version 3.22, if the servers know them.
 *
 * Where the lock has to stay for a time, it stays under another field. So no late command of its owner changes it, and
 * the same release, sent again, finds that it was executed.
 */
export const REDISSON_RELEASE = scriptOf(
  'redissonRelease',
  `
local kept = ARGV[1] .. ':kept'
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return redis.call('hexists', KEYS[1], kept)
end
if tonumber(ARGV[2]) > 0 then
  redis.call('hdel', KEYS[1], ARGV[1])
  redis.call('hset', KEYS[1], kept, 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
redis.call('publish', ARGV[3], '0')
if ARGV[4] == '1' then
  redis.pcall('spublish', ARGV[3], '0')
end
redis.call('hdel', KEYS[1], ARGV[1])
return 1
`,
);
