-- Deletes a stored result. If the work is running now, the result of that run is not stored either: it may be based on
-- data from before the change for which the result is forgotten.
--
-- KEYS   1  lock
--        2  result; see claim-result.lua
-- ARGV   1  how long Redis remembers not to store the result of that run, in milliseconds
-- Reply  1

-- @include clock
-- @include holder

-- First: when out of memory, Redis only lets a script begin with a deletion.
redis.call('DEL', KEYS[2])
local owner = readHolder(KEYS[1])
if owner and owner ~= '' then redis.call('SET', KEYS[2], '!' .. redis.sha1hex(owner), 'PX', ARGV[1]) end
return 1
