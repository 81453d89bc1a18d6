-- Deletes a kept result. If its work runs again just now, the result of that run is not kept either: it may come from
-- what was read before the change for which the result is forgotten.
--
-- KEYS   1  lock
--        2  result; see claim-result.lua
-- ARGV   1  how long Redis remembers that the result of a run is not to be kept, in milliseconds
-- Reply  1

-- @include clock
-- @include holder

-- First: without memory to spare, Redis lets a script begin with a deletion only.
redis.call('DEL', KEYS[2])
local owner = readHolder(KEYS[1])
if owner and owner ~= '' then redis.call('SET', KEYS[2], '!' .. redis.sha1hex(owner), 'PX', ARGV[1]) end
return 1
