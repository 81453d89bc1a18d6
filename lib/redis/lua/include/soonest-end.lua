-- Sets soonest: when the first unexpired place in the queue expires. Needs queueKey, clock.lua, and expiry, of a place
-- that was just written. An inline fragment.

soonest = redis.call('ZRANGE', queueKey, '(' .. now, '(100000000000000', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
soonest = tonumber(soonest[2] or expiry)
