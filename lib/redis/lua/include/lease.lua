-- lengthen(lockKey, leaseMs) and holderTtl(lockKey): how long a lock lasts.

-- The lease runs at least this much longer. Never less: a command that comes late must not cut what was extended since. Writes
-- in any case: whoever then waits for replicas waits for all that was written before, too.
local function lengthen(lockKey, leaseMs)
  local ttl = math.max(tonumber(leaseMs), redis.call('PTTL', lockKey))
  redis.call('PEXPIRE', lockKey, string.format('%.0f', ttl))
end

-- What is left of the holder's lease. A lock without one (somebody called PERSIST) never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
