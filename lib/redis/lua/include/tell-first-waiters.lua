-- Notifies the first waiters of the new time after which the lock may be free. Needs lockKey and queueKey; ends, that time
-- in milliseconds; behind, the number of a place: only waiters after it are notified, because those before it know. An
-- inline fragment: a function would cost every script that frees something.
--
-- The first receiver gets that time, and each further one a second more, because it only matters if those before it have
-- died. So four of them may die. If no connection receives it, the client has died, or is connected to another node of a
-- cluster: then the next one gets a quarter of a second more. At most eight are notified.

pcall(firstWaiter, queueKey)
-- Another program may have overwritten the queue, or the ACL forbids its key. That does not affect the lock.
local places, heard, unheard = redis.pcall('ZRANGE', queueKey, 0, 15), 0, 0
for index = 1, #places do
  local position, _, lasts, sentAt = string.match(places[index], PLACE)
  local waiter = places[index + 1]
  if position and tonumber(lasts) > now and waiter and string.find(waiter, '^[^ ].*/') then
    if tonumber(position) <= tonumber(behind) then
      heard = heard + 1
    else
      local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', ends + 1000 * heard + 250 * unheard)
      -- @inline tell-left
      if receivers == 0 then unheard = unheard + 1 else heard = heard + 1 end
    end
    if heard >= 4 then break end
  end
end
