-- Restarts a lease, even if that shortens it.
--
-- KEYS   1  lock
--        2  queue
-- ARGV   1  owner
--        2  lease in milliseconds
-- Reply  1: renewed
--        0: not the owner; nothing was changed

-- @include clock
-- @include holder
-- @include holder-renewal
-- @include renewal
-- @include shortened

local leaseMs = tonumber(ARGV[2])
local owner, token, mode, about, depth = readHolder(KEYS[1])
if owner == '' then
  local _, _, expiry = findMember(KEYS[1], ARGV[1])
  if not renewMember(KEYS[1], ARGV[1], leaseMs, true) then return 0 end
  if now + leaseMs < expiry then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
  return 1
end
if owner ~= ARGV[1] then return 0 end
local holder = { owner = owner, token = token, mode = mode, about = about, depth = depth }
if leaseMs < renewHolder(KEYS[1], holder, leaseMs, true) then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
return 1
