-- Writes a place of the queue anew, with another expiry and stamp, and sets before: how many waiters stand before it, unless
-- that is known. Needs queueKey; number, owner and data of the place as it stands; expiry, the new one; place, what follows
-- the number in the new data; and before. An inline fragment: a function would cost those that join as well.

local rewritten = ' ' .. number .. place
-- In this order nothing of the place is missing where Redis refuses to go on, for want of memory or of a right.
redis.call('ZADD', queueKey, expiry, '#' .. number, number, rewritten)
-- Another program may have removed it. Within a millisecond, both are the same.
if data ~= owner and data ~= rewritten then redis.call('ZREM', queueKey, data) end
before = before or redis.call('ZCOUNT', queueKey, '-inf', '(' .. number) / 2
