/**
 * A latch: one hash.
 *
 * count  how many count-downs open it
 * +<id>  one that was counted: how many are missing is what the hash lacks, so nothing can be counted twice
 * open   in place of those, once it is open
 *
 * `readLatch(latchKey)`: its count, and how many are missing; nothing where there is none. A key with anything else in it is
 * somebody else's, and a WRONGTYPE error.
 *
 * `latchReply(latchKey, count, remaining)`: what the scripts reply.
 */
export const LATCH = `
local function readLatch(latchKey)
  local fields = redis.call('HMGET', latchKey, 'count', 'open')
  local size, count = redis.call('HLEN', latchKey), tonumber(fields[1] or '')
  if count then return count, fields[2] and 0 or math.max(0, count + 1 - size) end
  -- Not a latch, so this raises Redis's own error.
  if size > 0 then return redis.call('LLEN', latchKey) end
end

local function latchReply(latchKey, count, remaining)
  return { count, remaining, math.max(0, redis.call('PTTL', latchKey)) }
end
`;

/** `useLatch(latchKey, count, ttlMs)`: what readLatch gives, of a new latch where there is none. Needs LATCH. */
export const USE_LATCH = `
local function useLatch(latchKey, count, ttlMs)
  local stated, remaining = readLatch(latchKey)
  if stated then return stated, remaining end
  -- Changes nothing yet, but where an ACL forbids it, it fails here: a latch never stands without expiry.
  redis.call('PEXPIRE', latchKey, ttlMs)
  redis.call('HSET', latchKey, 'count', count)
  redis.call('PEXPIRE', latchKey, ttlMs)
  return tonumber(count), tonumber(count)
end
`;
