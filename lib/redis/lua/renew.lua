-- Starts the lease anew.
--
-- KEYS   1  lock
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  '1' to shorten a lease that has longer to run
-- Reply  1: renewed
--        0: not the owner; nothing was changed

-- An exclusive lock of this owner: nearly always, and no members whose time would have to be known.
local text = redis.pcall('GET', KEYS[1])
if type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
  local ttl = ARGV[3] == '1' and 0 or redis.call('PTTL', KEYS[1])
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

local holder = readHolder(KEYS[1], text)
if holder == '' then return renewMember(KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1') and 1 or 0 end
if holder ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else lengthen(KEYS[1], ARGV[2]) end
return 1
