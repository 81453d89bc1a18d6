-- holderTtl(lockKey): the time left of a lock.

-- The time left of the holder's lease. Without expiry (after PERSIST), a lock never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
