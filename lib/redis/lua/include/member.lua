-- findMember(lockKey, owner): permits, fencing token and expiry of one member.

-- @include clock

-- Permits, fencing token and expiry of a member whose lease runs.
local function findMember(lockKey, owner)
  local entry = redis.call('HGET', lockKey, owner)
  if not entry then return nil end
  local permits, token, expiry = string.match(entry, '^(%d+) (%d+) (%d+)$')
  if not permits or tonumber(expiry) <= now then return nil end
  return permits, token, tonumber(expiry)
end
