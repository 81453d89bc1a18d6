-- Tells the first waiters in how many milliseconds the lock may be free, in place of the end that they were told of. Needs
-- lockKey and queueKey; ends, in how many milliseconds; behind, the number of a place: only those after it are told, and
-- those before it know it. An inline fragment: a function would cost every script that frees something.
--
-- The first one that hears it is told the end, and each one behind it another second: it looks only where those before it
-- have died. So four of them may die. Where no connection has heard it, the client has died, or is at another node of a
-- cluster: then the next one is told a quarter of a second more. At most eight are told.

pcall(firstWaiter, queueKey)
-- Another program may have written the queue, or its key is forbidden. The lock is what it is all the same.
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
