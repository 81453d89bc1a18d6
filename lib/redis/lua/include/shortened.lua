-- tellOfEnd(lockKey, queueKey, ends): a lease was shortened to this many milliseconds from now. The first waiters have
-- scheduled their next question by the old end, so they are notified of the new one. If a message is lost, that waiter's
-- next keep finds out.

-- @include queue

local function tellOfEnd(lockKey, queueKey, ends)
  local behind = 0
  -- @inline tell-first-waiters
end
