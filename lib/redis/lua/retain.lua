-- Releases like release.lua, but keeps the resource held until its minimum has passed, counted from the grant, whose time
-- is in the fencing token. No process owns it then: the field or text of the owner continues under an id that no process
-- can have created, so no late command of the old owner changes anything, and the instance is still shown. Its lease is 0
-- from then on.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  owner
--        2  the minimum in milliseconds; '' if only the next argument decides
--        3  the maximum that can be left of it, in milliseconds: a token may be ahead of the clock
--        4  if given: grants nothing
-- Reply  1: the owner held it, or the command was sent again
--        0: not the owner; no lock was changed
--        3, 2: the same as 1 and 0, and the sender has to continue granting

-- @include clock
-- @include granting
-- @include releasing
-- @include passed-on
-- @include member
-- @include holder-renewal

local owner, leftMs, fenceKey = ARGV[1], tonumber(ARGV[3]), not ARGV[4] and KEYS[3]
local client = string.match(owner, '^(.*)/')
local kept = client .. '/' .. redis.sha1hex(owner)
local holder, token, mode, about = readHolder(KEYS[1])
local isKept, permits = holder == kept, nil
if holder == '' then
  isKept = findMember(KEYS[1], kept) and true
  local standing = { findMember(KEYS[1], owner) }
  permits, token, about = standing[1], standing[2], standing[4]
  if permits then holder = owner end
end
if isKept then
  -- Repeated. In between, a late acquire may have queued the owner, or granted it another share.
  releaseLock(KEYS[1], KEYS[2], fenceKey, owner)
  return passedOn(1)
end
-- A tick is 20 microseconds and has 64 tokens.
if holder == owner and ARGV[2] ~= '' and token then
  leftMs = math.min(leftMs, 1577836800000 + math.floor(token / 3200) + ARGV[2] - now)
end
if holder ~= owner or leftMs < 1 then return passedOn((releaseLock(KEYS[1], KEYS[2], fenceKey, owner))) end

local forMs = string.format('%.0f', leftMs)
about = '0' .. string.match(about, '^%d*(.*)$')
if permits then
  local lock = readMembers(KEYS[1])
  redis.call('HDEL', KEYS[1], owner)
  lock.used = lock.used - permits
  local request = { mode = mode, count = tonumber(permits), about = about }
  addMember(KEYS[1], lock, kept, request, token, forMs)
else
  -- First: when out of memory, Redis only lets a script begin with this.
  redis.call('PEXPIRE', KEYS[1], forMs)
  writeHolder(KEYS[1], { owner = kept, token = token, mode = mode, about = about, depth = 1 })
end

-- The first waiters know the old end of the lease. They are notified of the time that is left now.
local lockKey, queueKey, ends, behind = KEYS[1], KEYS[2], leftMs, 0
-- @inline tell-first-waiters
return 1
