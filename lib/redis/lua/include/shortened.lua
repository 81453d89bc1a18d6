-- tellOfEnd(lockKey, queueKey, leaseMs): a lease was made shorter. The first waiter has planned its next question by the
-- end that it was told of, so it is told of the new one. Where the message is lost, its next keep finds out.

-- @include queue

local function tellOfEnd(lockKey, queueKey, leaseMs)
  local isQueue, waiter, _, _, _, sentAt = pcall(firstWaiter, queueKey)
  -- Another program may have written the queue, or its key is forbidden. The lease is shorter all the same.
  if not isQueue or not sentAt or not string.find(waiter, '/', 1, true) then return end
  local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', leaseMs)
  -- @inline tell-left
end
