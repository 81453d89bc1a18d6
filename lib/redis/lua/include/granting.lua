-- grantWaiting(lockKey, queueKey, fenceKey, lock, own): grants a lock that is free, or shared, to the first live
-- waiter, and to those behind it as long as they can hold it together; each for the time left of its place. Notifies
-- their clients in the inbox, whose name has the same prefix as the fence. Returns the resulting lock, and the owner
-- that is first in the queue and was not granted; an empty string if that is not known yet.
--
-- lock is the result of readLock, or nil. Stops before own, the waiter that asks, which needs no message. Skips expired
-- places, and clients whose inbox has no subscriber; on a cluster it does not check that, because a node knows only its
-- own subscribers. A pattern subscriber is not a client. If an ACL forbids the channel, the grant is still valid (an
-- error is a table), and the waiter finds it with its heartbeat.
--
-- One script skips and grants a bounded number of waiters, then sets isCut. A script that frees something reports that
-- in its reply, and its sender continues at once, with a release without an owner. In case the sender dies before that,
-- the waiter that asked last is notified to ask at once, too; see tell-left.lua. If its client is not listening, one of
-- the two before it is notified. If a waiter's own script was cut, its reply makes it ask again: at once if it does
-- not wait, otherwise in a moment.
--
-- Without fenceKey it grants nothing, because queue and lock may be out of date: Redis may have restarted. The first
-- waiters are notified to ask, and their processes know when they may.
--
-- Every script that grants to waiters includes these files, which contain nothing else: each function costs a script as
-- much as a command, called or not.

-- @include fence
-- @include take
-- @include holder
-- @include members
-- @include admission
-- @include queue

local function take(lockKey, fenceKey, lock, owner, request, leaseMs)
  if request.mode ~= 'read' and request.mode ~= 'semaphore' then
    return takeLock(lockKey, fenceKey, owner, request.mode, leaseMs, request.about)
  end
  local token = mintToken(fenceKey)
  return token, addMember(lockKey, lock, owner, request, string.format('%.0f', token), leaseMs)
end

-- Frees what an owner holds, alone or as a member. Returns 1 if it still held it, and the resulting lock. The fields
-- are the result of readHolder, if there is one.
local function giveBack(lockKey, owner, isShared, fields)
  if isShared then return removeMember(lockKey, owner, fields) end
  return redis.call('DEL', lockKey), nil
end

local function grantWaiting(lockKey, queueKey, fenceKey, lock, own)
  if not fenceKey then
    local ends, behind = 0, 0
    -- @inline tell-first-waiters
    return lock
  end
  local prefix, inCluster = string.gsub(string.sub(fenceKey, 1, -6), '{[^{}]*}:$', '')
  local owner
  while true do
    local number, mode, leaseMs, sentAt, data, about
    owner, number, mode, leaseMs, sentAt, data, about = firstWaiter(queueKey)
    if not number or owner == own then

      -- @inline tell-watchers
      break
    end
    local request, client = parseRequest(mode, about), string.match(owner, '^([^ ].*)/')
    -- Drops what another program has written, and no waiter can have sent.
    local isPlace = client and leaseMs < 1000000000000000 and (mode == 'exclusive' or mode == 'read' or mode == 'write'
      or mode == 'reentrant' or ((request.count or 0) > 0 and request.total and request.count <= request.total))
    local isMisfit = isPlace and lock and isMismatch(lock, request)
    local isBlocked = isPlace and not isMisfit and not admits(lock, request)
    if isBlocked or budget <= 0 then
      -- Expired members that were not visited yet may have what it needs.
      isCut = isCut or not isBlocked or lock.isPartial
      break
    end
    leaveQueue(queueKey, number, isPlace and owner or '', data)
    budget = budget - 3
    local isDeaf, channel = not isPlace, isPlace and prefix .. 'inbox:' .. client
    if isPlace and inCluster == 0 then
      local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel)
      if listeners.err or listeners[2] == 0 then
        -- PUBLISH also counts pattern subscribers; and without permission nothing is certain.
        local receivers = redis.pcall('PUBLISH', channel, '')
        isDeaf = type(receivers) == 'number' and (receivers == 0 or not listeners.err)
      end
    end
    -- A waiter that uses the resource for something else finds out with its next heartbeat.
    if not isMisfit and not isDeaf then
      budget = budget - 3
      local token, shared = take(lockKey, fenceKey, lock, owner, request, string.format('%.0f', leaseMs))
      local tokenText = string.format('%.0f', token)
      -- @inline tell-grant
      if not shared then return { owner = owner, token = token, mode = mode, about = about } end
      lock = shared
    end
  end
  if isCut and not isNotified then
    isNotified = true
    -- The waiters that asked last: their places last longest.
    for _, mark in ipairs(redis.call('ZRANGE', queueKey, '(100000000000000', '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, 3)) do
      local number, left = string.match(mark, '^#(%d+)$'), 0
      local members = number and redis.call('ZRANGE', queueKey, number, number, 'BYSCORE') or {}
      local waiter, _, _, _, sentAt = members[2], string.match(members[1] or '', PLACE)
      if sentAt and waiter and waiter ~= own and string.find(waiter, '/', 1, true) then

        -- @inline tell-left
        if type(receivers) == 'number' and receivers > 0 then break end
      end
    end
  end
  return lock, owner
end
