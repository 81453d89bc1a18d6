-- Rewrites a place of the queue with a new expiry and stamp, and sets before, the number of waiters before it, unless it
-- is known. Needs queueKey; number, owner and data of the current place; expiry, the new one; place, what follows the
-- number in the new data; and before. An inline fragment: a function would also cost callers that join.

local rewritten = ' ' .. number .. place
-- In this order, the place is complete even if Redis rejects a command, for lack of memory or a permission.
redis.call('ZADD', queueKey, expiry, '#' .. number, number, rewritten)
-- Another program may have removed it. Within a millisecond, both are the same.
if data ~= owner and data ~= rewritten then redis.call('ZREM', queueKey, data) end
before = before or redis.call('ZCOUNT', queueKey, '-inf', '(' .. number) / 2
