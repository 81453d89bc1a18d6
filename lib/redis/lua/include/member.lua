-- findMember(lockKey, owner): permits, fencing token, expiry and label of one member.

-- @include clock

-- Permits, fencing token and expiry of a member whose lease runs; and its label after a space, or an empty string.
local function findMember(lockKey, owner)
  local entry = redis.call('HGET', lockKey, owner)
  if not entry then return nil end
  local permits, token, expiry, label = string.match(entry, '^(%d+) (%d+) (%d+)(.*)$')
  if not permits or tonumber(expiry) <= now or #expiry > 15 then return nil end
  return permits, token, tonumber(expiry), label
end
