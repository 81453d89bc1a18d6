-- useLatch(latchKey, count, ttlMs): what readLatch returns, of a new latch if there is none.

-- @include latch

local function useLatch(latchKey, count, ttlMs)
  local stated, remaining = readLatch(latchKey)
  if stated then return stated, remaining end
  -- Changes nothing yet, but where an ACL forbids it, it fails here: a latch never stands without expiry.
  redis.call('PEXPIRE', latchKey, ttlMs)
  redis.call('HSET', latchKey, 'count', count)
  redis.call('PEXPIRE', latchKey, ttlMs)
  return tonumber(count), tonumber(count)
end
