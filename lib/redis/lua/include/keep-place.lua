-- Writes a place of the queue anew, with another expiry and stamp, and sets before: how many waiters stand before it.
-- Needs queueKey; number, owner and data of the place as it stands; expiry, the new one; place, what follows the number
-- in the new data; and before. An inline fragment: a function would cost those that join as well.

-- In this order nothing of the place is missing, wherever an ACL forbids to go on.
redis.call('ZADD', queueKey, expiry, '#' .. number)
-- Another program may have removed it.
if data ~= owner then redis.call('ZREM', queueKey, data) end
redis.call('ZADD', queueKey, number, ' ' .. number .. place)
before = redis.call('ZCOUNT', queueKey, '-inf', '(' .. number) / 2
