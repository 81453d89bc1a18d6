-- releaseLock(lockKey, queueKey, fenceKey, owner, text): leaves the queue, and passes on or frees what this owner
-- holds. Returns 1 if it held it; whether it has looked at the lock, and the lock as it is then. text is as for
-- readHolder. It always grants what is free to the waiters: a holder may have died, or a writer given up that had
-- readers behind it.

-- @include granting

local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- Where another program's key stands in the place of the queue, the lock is freed all the same.
  local isQueue, number = pcall(findPlace, queueKey, owner)
  if isQueue and number then leaveQueue(queueKey, number, owner) end
  -- Another owner's, or another program's key.
  if holder == false or (holder and holder ~= '' and holder ~= owner) then return 0, false end
  local released, lock = 0, nil
  -- First, also where the lock is passed on: without memory to spare, Redis lets a script begin with a deletion only.
  if holder then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if not isQueue then return released, true, lock end
  -- Where another program's key stands in the place of the fence as well: it grants nothing, and the waiters are told why by their
  -- heartbeats.
  local isGranted, after = pcall(grantWaiting, lockKey, queueKey, fenceKey, lock)
  return released, isGranted, isGranted and after or nil
end
