-- Sets how many permits of a semaphore an owner has, and grants those that become free to the next waiters. The lease
-- keeps its end.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  owner
--        2  permits that are left, at least 1
--        3  if given: grants nothing
-- Reply  1: the owner has no more than these, possibly since an earlier command
--        3: the same, and the sender has to continue granting
--        0: not the owner, or no semaphore; nothing was changed

-- @include clock
-- @include granting
-- @include passed-on
-- @include any-lock
-- @include member

local lock = readLock(KEYS[1])
if not lock or lock.mode ~= 'semaphore' then return 0 end
local permits, token, expiry, about = findMember(KEYS[1], ARGV[1])
if not permits then return 0 end
local freed = permits - ARGV[2]
if freed > 0 then
  -- First: when out of memory, Redis only lets a script begin with this.
  keepAlive(KEYS[1], expiry - now)
  lock.used = lock.used - freed
  local entry = ARGV[2] .. ' ' .. token .. ' ' .. string.format('%.0f', expiry) .. ' ' .. about
  redis.call('HSET', KEYS[1], ARGV[1], entry, 'used', lock.used)
end
grantWaiting(KEYS[1], KEYS[2], not ARGV[3] and KEYS[3], lock)
return passedOn(1)
