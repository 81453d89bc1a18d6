-- releaseLock(lockKey, queueKey, fenceKey, owner, text): leaves the queue, and passes on or frees what this owner
-- holds. Returns 1 if it held it; whether it has read the lock, and the resulting lock. text is as for readHolder. With a
-- fence, it always grants what is free to the waiters: a holder may have died, or a writer with readers behind it may
-- have given up. If one of the first waiters gives up, it may have been notified of an earlier end of the lease: then
-- the waiters that are now among the first are notified of the time left.

-- @include granting

local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- If another program has overwritten the queue, the lock is still freed.
  local isQueue, number = pcall(findPlace, queueKey, owner)
  if isQueue and number then leaveQueue(queueKey, number, owner) end
  -- Another owner's, or another program's key.
  local isOthers = holder == false or (holder and holder ~= '' and holder ~= owner)
  local released, isKnown, lock = 0, not isOthers, nil
  -- First, even if the lock is passed on: when out of memory, Redis only lets a script begin with a deletion.
  if holder and isKnown then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if not isQueue then return released, isKnown, lock end
  -- If another program has overwritten the fence as well, it grants nothing, and the waiters find out why with their
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
