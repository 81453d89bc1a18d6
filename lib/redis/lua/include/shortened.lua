-- tellOfEnd(lockKey, queueKey, ends): a lease was made shorter, to so many milliseconds from now. The first waiters have
-- planned their next question by the end that they were told of, so they are told of the new one. Where a message is lost,
-- the next keep of that waiter finds out.

-- @include queue

local function tellOfEnd(lockKey, queueKey, ends)
  local behind = 0
  -- @inline tell-first-waiters
end
