-- Finds out whether a lock could be taken now: reads and writes what acquire.lua does, and leaves nothing behind. Both
-- writes are in one step, so a process that dies leaves nothing either. No lock has this key, and no token is minted.
--
-- KEYS   1  a key of its own, which looks like that of a lock
--        2  its queue
--        3  the fence
-- ARGV   none
-- Reply  1

redis.call('EXISTS', KEYS[1], KEYS[2])
redis.call('GET', KEYS[3])
redis.call('SET', KEYS[1], 'probe', 'PX', 1000)
redis.call('DEL', KEYS[1])
return 1
