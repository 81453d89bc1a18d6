-- renewMember(lockKey, owner, leaseMs, exactly): starts the lease of one member anew.

-- @include members
-- @include member

-- The member's lease starts anew, and is not made shorter unless it is said to. Gives its token, or nil.
local function renewMember(lockKey, owner, leaseMs, exactly)
  local permits, token, expiry, label = findMember(lockKey, owner)
  if not permits then return nil end
  local renewed = now + leaseMs
  keepAlive(lockKey, leaseMs)
  if renewed < expiry and not exactly then return token end
  redis.call('HSET', lockKey, owner, permits .. ' ' .. token .. ' ' .. string.format('%.0f', renewed) .. label)
  if renewed < expiry then
    local bounds = redis.call('HMGET', lockKey, 'soonest', 'sweep')
    local text = string.format('%.0f', renewed)
    if renewed < tonumber(bounds[1]) then redis.call('HSET', lockKey, 'soonest', text) end
    -- It may have been seen already.
    local cursor, seen = string.match(bounds[2] or '', '^(%d+) (%d+)$')
    if cursor and renewed < tonumber(seen) then redis.call('HSET', lockKey, 'sweep', cursor .. ' ' .. text) end
  end
  return token
end
