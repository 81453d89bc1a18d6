-- renewMember(lockKey, owner, leaseMs, exactly): restarts the lease of one member.

-- @include members
-- @include member

-- Restarts the member's lease, and only shortens it if exactly is set. Returns its token, or nil.
local function renewMember(lockKey, owner, leaseMs, exactly)
  local permits, token, expiry, about = findMember(lockKey, owner)
  if not permits then return nil end
  local renewed = now + leaseMs
  keepAlive(lockKey, leaseMs)
  local lasts = string.format('%.0f', exactly and renewed or math.max(renewed, expiry))
  about = string.format('%.0f', lasts - now) .. string.match(about, '^%d+(.*)$')
  redis.call('HSET', lockKey, owner, permits .. ' ' .. token .. ' ' .. lasts .. ' ' .. about)
  if exactly and renewed < expiry then
    local bounds = redis.call('HMGET', lockKey, 'soonest', 'sweep')
    if renewed < tonumber(bounds[1]) then redis.call('HSET', lockKey, 'soonest', lasts) end
    -- It may have been visited already.
    local cursor, seen = string.match(bounds[2] or '', '^(%d+) (%d+)$')
    if cursor and renewed < tonumber(seen) then redis.call('HSET', lockKey, 'sweep', cursor .. ' ' .. lasts) end
  end
  return token
end
