-- Restarts the lease.
--
-- KEYS   1  lock
--        2  queue: only if a lease may be shortened
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  '1' to shorten a lease that has longer to run
-- Reply  1: renewed
--        0: not the owner; nothing was changed

-- An exclusive lock of this owner, renewed as before: nearly always, and no members whose time would have to be known.
local text, known = redis.pcall('GET', KEYS[1]), ARGV[1] .. ' '
if ARGV[3] ~= '1' and type(text) == 'string' and string.sub(text, 1, #known) == known then
  local lease = string.match(text, '^%d+ (%d+)', #known + 1)
  if lease == ARGV[2] and redis.call('PTTL', KEYS[1]) <= tonumber(lease) then return redis.call('PEXPIRE', KEYS[1], lease) end
end
if not text then return 0 end

-- @include clock
-- @include holder
-- @include holder-renewal
-- @include members
-- @include member
-- @include renewal
-- @include shortened

local leaseMs, isExact = tonumber(ARGV[2]), ARGV[3] == '1'
local owner, token, mode, about, depth = readHolder(KEYS[1], text)
if owner == '' then
  local expiry = isExact and select(3, findMember(KEYS[1], ARGV[1]))
  if not renewMember(KEYS[1], ARGV[1], leaseMs, isExact) then return 0 end
  if expiry and now + leaseMs < expiry then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
  return 1
end
if owner ~= ARGV[1] then return 0 end
local holder = { owner = owner, token = token, mode = mode, about = about, depth = depth }
local ttl = renewHolder(KEYS[1], holder, leaseMs, isExact)
if isExact and leaseMs < ttl then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
return 1
