-- acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, label, newestKey, newest, isKnown,
-- known): the whole of acquire, for a lock that may be held or waited for. label: nil if there is none. newestKey and
-- newest: for a call that cancels older ones; see acquire.lua. known: the lock as releaseLock found it in the same script,
-- if isKnown. Returns the reply of the script.
-- After 'queued' it has a sixth element, 1, if the holder was notified that a newer call wants the lock.

-- @include granting
-- @include lease
-- @include holder-renewal
-- @include any-lock
-- @include member
-- @include renewal
-- @include resizing
-- @include joining
local function acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, label, newestKey, newest,
  isKnown, known)
  -- Read before anything is written: a problem with a key must not leave a lock behind.
  local number = findPlace(queueKey, owner)
  local lock, first, held = known, nil, nil
  if not isKnown then lock = readLock(lockKey) end
  if lock and lock.used == 0 then lock = nil end
  if lock and lock.used then
    held = renewMember(lockKey, owner, leaseMs)
  elseif lock and lock.owner == owner then
    renewHolder(lockKey, lock, leaseMs)
    held = lock.token
  end
  if held then
    if number then leaveQueue(queueKey, number, owner) end
    return tonumber(held)
  end
  local began, keepMs
  if newest and not number then
    -- It joins now, unless a newer call has joined already, which it would cancel. A time in the future is from before the
    -- clock of Redis was set back.
    local newerBegan, newer = string.match(redis.call('GET', newestKey) or '', '^(%d+) (.+)$')
    local age, keep = string.match(newest, '^(%d+) (%d+)$')
    began, keepMs = now - age, keep
    if newer and newer ~= owner and tonumber(newerBegan) > began and tonumber(newerBegan) <= now then
      return { 'full', 0, '', string.match(newer, '^[^/]*') }
    end
  end
  local request = parseRequest(mode, leaseMs, label)
  if not lock or lock.used then
    -- A holder died, or a writer that readers wait behind: the next waiters come before this one.
    lock, first = grantWaiting(lockKey, queueKey, fenceKey, lock, owner)
    -- This raises Redis's own error.
    if isStrange then redis.call('LLEN', queueKey) end
    if number then number = findPlace(queueKey, owner) end
  end
  local isMisfit = lock and isMismatch(lock, request)
  if not isMisfit and (not first or first == owner) and admits(lock, request) then
    if number then leaveQueue(queueKey, number, owner) end
    if began then redis.call('SET', newestKey, string.format('%.0f', began) .. ' ' .. owner, 'PX', keepMs) end
    return (take(lockKey, fenceKey, lock, owner, request, leaseMs))
  end
  -- More is known in a moment.
  local ttl = 1
  if lock and not isCut and not lock.isPartial then
    ttl = lock.mode == 'semaphore' and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  end
  if isMisfit then
    if number then leaveQueue(queueKey, number, owner) end
    return { 'mismatch', ttl, lock.mode, lock.total or 1 }
  end

  -- @inline seen-holders
  if sentAt == '' then return { 'busy', ttl, seen, (isCut or (lock and lock.isPartial)) and 1 or nil } end
  -- It may only keep a place, and has none.
  if not number and tonumber(maxWaiters) == 0 then return { 'full', ttl, seen } end
  local place, soonestMs = joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, tonumber(maxWaiters), request.about)
  if not place then return { 'full', ttl, seen } end
  if began then redis.call('SET', newestKey, string.format('%.0f', began) .. ' ' .. owner, 'PX', keepMs) end
  -- The TTL is the last reader's, but a reader that dies may expire earlier.
  if lock and lock.mode == 'read' then soonestMs = math.max(1, math.min(soonestMs, lock.soonest - now)) end
  if request.resized and lock and lock.used and not lock.resized then
    -- From now on its total also applies to the waiters before it.
    resize(lockKey, lock, request.total)
    grantWaiting(lockKey, queueKey, fenceKey, lock)
  end
  local told
  if string.sub(owner, -1) == '!' then
    -- A call that cancels older ones has such an owner id. Notifies the holder of an exclusive lock, and a hundred waiters
    -- before it, if their owner ids end with ~ or ~!: "seal superseded instance resource" in the inboxes of their clients;
    -- see grant-seal.ts. Takes nothing from them.
    local older = place > 1 and redis.call('ZRANGE', queueKey, 0, math.min(2 * place, 202) - 3) or {}
    older[#older + 1] = lock and lock.owner
    local said, prefix = 'superseded ' .. string.match(owner, '^[^/]*'), string.match(lockKey, '^(.*){[^{}]*}$')
    for index = 1, #older do
      local other = older[index]
      local client = string.match(other, '^([^ #!].*)/[^/]*~!?$')
      if client then
        local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. client,
          redis.sha1hex(said .. ' ' .. other) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
        -- An ACL may forbid the channel.
        if lock and other == lock.owner and type(receivers) == 'number' then told = 1 end
      end
    end
  end
  return { 'queued', ttl, seen, place, soonestMs, told }
end
