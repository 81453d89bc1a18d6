-- releaseLock(lockKey, queueKey, fenceKey, owner, text): leaves the queue, and passes on or frees what this owner
-- holds. Returns 1 if it held it; whether it has looked at the lock, and the lock as it is then. text is as for
-- readHolder. With a fence, it always grants what is free to the waiters: a holder may have died, or a writer given up that had
-- readers behind it. A waiter that gives up among the first ones may be one that was told of an end that has moved nearer:
-- those who are now among the first are told what is left.

-- @include granting

local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- Where another program's key stands in the place of the queue, the lock is freed all the same.
  local isQueue, number = pcall(findPlace, queueKey, owner)
  if isQueue and number then leaveQueue(queueKey, number, owner) end
  -- Another owner's, or another program's key.
  local isOthers = holder == false or (holder and holder ~= '' and holder ~= owner)
  local released, isKnown, lock = 0, not isOthers, nil
  -- First, also where the lock is passed on: without memory to spare, Redis lets a script begin with a deletion only.
  if holder and isKnown then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if not isQueue then return released, isKnown, lock end
  -- Where another program's key stands in the place of the fence as well: it grants nothing, and the waiters are told why by their
  -- heartbeats.
  if isKnown then
    isKnown, lock = pcall(grantWaiting, lockKey, queueKey, fenceKey, lock)
    if not isKnown then lock = nil end
  end
  local ends = number and holder and (isOthers and redis.call('PTTL', lockKey) or lock and lock.used and lock.soonest - now) or 0
  if ends > 0 then
    local behind = number
    -- @inline tell-first-waiters
  end
  return released, isKnown, lock
end
