-- writeHolder(lockKey, holder) and renewHolder(lockKey, holder, leaseMs, exactly): what stands of a single holder. holder
-- has the fields that readLock returned.

-- Writes it anew; the expiry stays.
local function writeHolder(lockKey, holder)
  if holder.mode == 'exclusive' then
    redis.call('SET', lockKey, holder.owner .. ' ' .. holder.token .. ' ' .. holder.about, 'KEEPTTL')
  else
    redis.call('HSET', lockKey, 'owner', holder.owner, 'token', holder.token or '', 'about', holder.about, 'depth', holder.depth or 1)
  end
end

-- The lease starts anew, and is not made shorter unless it is said to: a command that comes late must not cut what was
-- extended since. Sets the expiry in any case, and first: a sender that waits for replicas waits for all that was written
-- before, too, and without memory to spare, Redis lets a script begin with this only. Gives what was left of it before.
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
