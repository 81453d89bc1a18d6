-- takeLock(lockKey, fenceKey, owner, mode, leaseMs, about): writes the lock of a single owner with a new token, and
-- returns the token. leaseMs: how long it lasts from now. about: see holder.lua.

-- @include fence

local function takeLock(lockKey, fenceKey, owner, mode, leaseMs, about)
  local token = mintToken(fenceKey)
  local text = string.format('%.0f', token)
  if mode == 'exclusive' then
    redis.call('SET', lockKey, owner .. ' ' .. text .. ' ' .. about, 'PX', leaseMs)
  else
    -- Changes nothing yet, but if an ACL forbids it, it fails here and not after HSET: a lock never exists without expiry.
    redis.call('PEXPIRE', lockKey, leaseMs)
    redis.call('HSET', lockKey, 'mode', mode, 'owner', owner, 'token', text, 'about', about)
    redis.call('PEXPIRE', lockKey, leaseMs)
  end
  return token
end
