-- Starts the lease anew.
--
-- KEYS   1  lock
--        2  queue: only where a lease may be shortened
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  '1' to shorten a lease that has longer to run
-- Reply  1: renewed
--        0: not the owner; nothing was changed

-- An exclusive lock of this owner: nearly always, and no members whose time would have to be known.
local text = redis.pcall('GET', KEYS[1])
if ARGV[3] ~= '1' and type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
  local ttl = redis.call('PTTL', KEYS[1])
  redis.call('PEXPIRE', KEYS[1], ttl < tonumber(ARGV[2]) and ARGV[2] or string.format('%.0f', ttl))
  return 1
end
if not text then return 0 end

-- @include clock
-- @include holder
-- @include lease
-- @include members
-- @include member
-- @include renewal
-- @include shortened

local holder, leaseMs, isExact = readHolder(KEYS[1], text), tonumber(ARGV[2]), ARGV[3] == '1'
if holder == '' then
  local expiry = isExact and select(3, findMember(KEYS[1], ARGV[1]))
  if not renewMember(KEYS[1], ARGV[1], ARGV[2], isExact) then return 0 end
  if expiry and now + leaseMs < expiry then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
  return 1
end
if holder ~= ARGV[1] then return 0 end
if not isExact then
  lengthen(KEYS[1], ARGV[2])
  return 1
end
local ttl = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if leaseMs < ttl then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
return 1
