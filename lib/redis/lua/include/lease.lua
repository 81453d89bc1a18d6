-- holderTtl(lockKey): how long a lock lasts.

-- What is left of the holder's lease. A lock without one (somebody called PERSIST) never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
