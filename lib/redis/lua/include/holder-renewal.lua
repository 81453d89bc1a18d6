-- writeHolder(lockKey, holder) and renewHolder(lockKey, holder, leaseMs, exactly): write a single holder. holder has the
-- fields that readLock returned.

-- Rewrites it; the expiry stays.
local function writeHolder(lockKey, holder)
  if holder.mode == 'exclusive' then
    redis.call('SET', lockKey, holder.owner .. ' ' .. holder.token .. ' ' .. holder.about, 'KEEPTTL')
  else
    redis.call('HSET', lockKey, 'owner', holder.owner, 'token', holder.token or '', 'about', holder.about, 'depth', holder.depth or 1)
  end
end

-- Restarts the lease, and only shortens it if exactly is set: a late command must not cut a lease that was extended
-- since. Always sets the expiry, and first: a sender that waits for replicas also waits for all earlier writes, and when
-- out of memory, Redis only lets a script begin with this. Returns the time that was left before.
local function renewHolder(lockKey, holder, leaseMs, exactly)
  local ttl = redis.call('PTTL', lockKey)
  local lasts = string.format('%.0f', exactly and leaseMs or math.max(leaseMs, ttl))
  redis.call('PEXPIRE', lockKey, lasts)
  local lease, label = string.match(holder.about, '^(%d*)(.*)$')
  if lease ~= lasts then
    holder.about = lasts .. label
    writeHolder(lockKey, holder)
  end
  return ttl
end
