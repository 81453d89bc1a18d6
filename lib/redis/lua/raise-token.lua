-- Makes the fencing token of a lease at least as large as its token on another server. Tokens that are minted here later
-- are larger too: the fence continues from the tick of that token, even if the owner does not hold the lock.
--
-- KEYS   1  lock
--        2  fence
-- ARGV   1  owner
--        2  fencing token
-- Reply  1: the lease has at least this token
--        0: not the owner; the lock was not changed

-- @include clock
-- @include holder
-- @include member
-- @include holder-renewal

local owner, raised = ARGV[1], tonumber(ARGV[2])
-- Read before anything is written: another program's key is a WRONGTYPE error.
local holder, token, mode, about, depth = readHolder(KEYS[1])
local permits, expiry
if holder == '' then
  permits, token, expiry, about = findMember(KEYS[1], owner)
  if permits then holder = owner end
end
-- The last half of its tick: see mint.lua.
local half = math.floor(raised / 64) * 2 + 1
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
if not last then redis.call('LLEN', KEYS[2]) end
if half > last then redis.call('SET', KEYS[2], string.format('%.0f', half)) end
if holder ~= owner then return 0 end
if (tonumber(token) or 0) >= raised then return 1 end
if permits then
  redis.call('HSET', KEYS[1], owner, permits .. ' ' .. ARGV[2] .. ' ' .. string.format('%.0f', expiry) .. ' ' .. about)
else
  writeHolder(KEYS[1], { owner = owner, token = ARGV[2], mode = mode, about = about, depth = depth })
end
return 1
