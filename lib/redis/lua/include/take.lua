-- takeLock(lockKey, fenceKey, owner, mode, leaseMs, label): writes the lock of a single owner with a new token, and
-- returns the token. label: nil where there is none.

-- @include fence

local function takeLock(lockKey, fenceKey, owner, mode, leaseMs, label)
  local token = mintToken(fenceKey)
  local text = string.format('%.0f', token)
  if mode == 'exclusive' then
    redis.call('SET', lockKey, owner .. ' ' .. (label and text .. ' ' .. label or text), 'PX', leaseMs)
  else
    -- Changes nothing yet, but where an ACL forbids it, it fails here and not after HSET: a lock never stands without expiry.
    redis.call('PEXPIRE', lockKey, leaseMs)
    redis.call('HSET', lockKey, 'mode', mode, 'owner', owner, 'token', text, owner, 1)
    if label then redis.call('HSET', lockKey, 'label', label) end
    redis.call('PEXPIRE', lockKey, leaseMs)
  end
  return token
end
