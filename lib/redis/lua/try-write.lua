-- Finds out whether a lock could be acquired now: reads and writes what acquire.lua does, and leaves nothing behind. All
-- writes are in one step, so a process that dies leaves nothing either. No lock uses this key, and no token is minted: the
-- script increments a copy of the fence.
--
-- KEYS   1  an unused key that looks like a lock's
--        2  its queue
--        3  the fence
-- ARGV   none
-- Reply  1. WRONGTYPE is about the fence: another program has written there, and no token can be minted

redis.call('EXISTS', KEYS[1], KEYS[2])
redis.call('SET', KEYS[1], redis.call('GET', KEYS[3]) or '0', 'PX', 1000)
local half = redis.pcall('INCRBY', KEYS[1], '2')
redis.call('DEL', KEYS[1])
if type(half) == 'table' then
  if not string.find(half.err, 'integer') and not string.find(half.err, 'overflow') then return half end
  half = math.huge
end
-- This raises Redis's own error, as in mint.lua.
if half > 281474976710655 then redis.call('LLEN', KEYS[3]) end
return 1
