-- Stores the result of a call of once and releases its lock, in one step, if this owner still holds it. Otherwise
-- nothing is stored: another call may have run since, and its result is newer.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  result; see claim-result.lua
-- ARGV   1  owner
--        2  how long Redis keeps the result, in milliseconds
--        3  the result
--        4  if given: grants nothing
-- Reply  like release.lua

-- @include clock
-- @include granting
-- @include releasing
-- @include passed-on

local owner, ttlMs, result = ARGV[1], ARGV[2], ARGV[3]
-- First: when out of memory, Redis only lets a script begin with a deletion.
local held = releaseLock(KEYS[1], KEYS[2], not ARGV[4] and KEYS[3], owner)
if held == 1 then
  if redis.pcall('GET', KEYS[4]) == '!' .. redis.sha1hex(owner) then
    redis.call('DEL', KEYS[4])
  else
    redis.call('SET', KEYS[4], result, 'PX', ttlMs)
  end
end
return passedOn(held)
