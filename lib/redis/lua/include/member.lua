-- findMember(lockKey, owner): permits, fencing token, expiry and about of one member.

-- @include clock

-- Only for a member whose lease has not expired. about: see holder.lua.
local function findMember(lockKey, owner)
  local entry = redis.call('HGET', lockKey, owner)
  if not entry then return nil end
  local permits, token, expiry, about = string.match(entry, '^(%d+) (%d+) (%d+) (%d.*)$')
  if not permits or tonumber(expiry) <= now or #expiry > 15 then return nil end
  return permits, token, tonumber(expiry), about
end
