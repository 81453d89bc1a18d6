/**
 * The queue of a resource: one hash, whose waiters are numbered in the order they came.
 *
 * head      the first number that may be in use
 * tail      the last number that was given
 * <number>  "owner mode expiry sentAt" of a waiter: its place ends at `expiry`, Redis's time in milliseconds; `sentAt` is the
 *           stamp of the command that set it, on the clock of its sender
 * <owner>   the number of that waiter
 *
 * A waiter costs one field to find, to move on, or to remove, however many there are. The numbers of those who left are
 * gaps, passed once. With its last waiter the key goes; and it expires with the last of their places.
 */
export const QUEUE = `
-- The number of the owner's place, if it has one, and the last number that was given. What is not a queue is somebody
-- else's key, and a WRONGTYPE error.
local function findPlace(queueKey, owner)
  local fields = redis.call('HMGET', queueKey, owner, 'tail')
  if not fields[2] and redis.call('EXISTS', queueKey) == 1 then return redis.call('LLEN', queueKey) end
  return fields[1], tonumber(fields[2] or 0)
end

local function leaveQueue(queueKey, number, owner)
  redis.call('HDEL', queueKey, number, owner)
  if redis.call('HLEN', queueKey) <= 2 then redis.call('DEL', queueKey) end
end

-- One who gives up at the end takes its number along: numbers that nobody has would have to be passed one by one.
local function giveUp(queueKey, number, tail, owner)
  leaveQueue(queueKey, number, owner)
  if tonumber(number) ~= tail or redis.call('EXISTS', queueKey) == 0 then return end
  repeat tail = tail - 1 until tail < 1 or redis.call('HGET', queueKey, string.format('%.0f', tail))
  redis.call('HSET', queueKey, 'tail', string.format('%.0f', tail))
end

-- The first waiter whose place has not expired: its owner, mode, expiry and stamp. The places before it are dropped.
local function firstWaiter(queueKey)
  local bounds = redis.call('HMGET', queueKey, 'head', 'tail')
  if not bounds[1] then return nil end
  for number = tonumber(bounds[1]), tonumber(bounds[2]) do
    local field = string.format('%.0f', number)
    local entry = redis.call('HGET', queueKey, field)
    if entry then
      local owner, mode, expiry, sentAt = string.match(entry, '^(%S+) (%S+) (%d+) (%d+)$')
      if owner and tonumber(expiry) > now then
        if field ~= bounds[1] then redis.call('HSET', queueKey, 'head', field) end
        return field, owner, mode, expiry - now, sentAt
      end
      redis.call('HDEL', queueKey, field, owner or '')
    end
  end
  redis.call('DEL', queueKey)
  return nil
end

-- Joins the end, or renews the place it has. Gives false where there are as many waiters as the contender accepts.
local function joinQueue(queueKey, number, tail, owner, mode, leaseMs, sentAt, maxWaiters)
  local entry = owner .. ' ' .. mode .. ' ' .. string.format('%.0f', now + leaseMs) .. ' ' .. sentAt
  local ttl
  if number then
    ttl = redis.call('PTTL', queueKey)
    redis.call('HSET', queueKey, number, entry)
  else
    if (redis.call('HLEN', queueKey) - 2) / 2 >= maxWaiters then
      firstWaiter(queueKey)
      if (redis.call('HLEN', queueKey) - 2) / 2 >= maxWaiters then return false end
    end
    -- Before anything is written, and after dead waiters may have taken the key with them.
    ttl = redis.call('PTTL', queueKey)
    number = tail + 1
    if redis.call('HLEN', queueKey) > 0 then
      redis.call('HSET', queueKey, 'tail', number, owner, number, number, entry)
    else
      -- Changes nothing yet, but where an ACL forbids it, it fails here: a queue never stands without expiry.
      redis.call('PEXPIRE', queueKey, leaseMs)
      redis.call('HSET', queueKey, 'head', number, 'tail', number, owner, number, number, entry)
    end
  end
  if ttl < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  return true
end
`;

/**
 * `grantNext(lockKey, queueKey, fenceKey)`: gives a lock that is free to the first waiter who is alive, for what is left of
 * its place, and tells its instance: "owner token sentAt resource" in the inbox. Says whether there was one. A place that
 * has expired, and an instance whose inbox nobody listens to, are passed over. Where an ACL forbids the channel the grant
 * stands (an error is a table), and the waiter finds it with its heartbeat. Needs QUEUE and TAKE.
 */
export const GRANT = `
local function grantNext(lockKey, queueKey, fenceKey)
  local inboxPrefix = string.sub(fenceKey, 1, -6) .. 'inbox:'
  while true do
    local number, owner, mode, leaseMs, sentAt = firstWaiter(queueKey)
    if not number then return false end
    leaveQueue(queueKey, number, owner)
    local token = takeLock(lockKey, fenceKey, owner, mode, string.format('%.0f', leaseMs))
    local receivers = redis.pcall('PUBLISH', inboxPrefix .. string.match(owner, '^(.*)/'),
      owner .. ' ' .. string.format('%.0f', token) .. ' ' .. sentAt .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
    if type(receivers) == 'table' or receivers > 0 then return true end
    redis.call('DEL', lockKey)
  end
end
`;

/**
 * `releaseLock(lockKey, queueKey, fenceKey, owner)`: leaves the queue, and passes on or frees the lock if it is this
 * owner's. Gives 1 if it was. A free lock whose holder has died goes to the next waiter as well. Needs GRANT and HOLDER.
 */
export const RELEASING = `
local function releaseLock(lockKey, queueKey, fenceKey, owner)
  local holder = readHolder(lockKey)
  -- Where somebody else's key stands in the place of the queue, the lock is freed all the same.
  local isQueue, number, tail = pcall(findPlace, queueKey, owner)
  if isQueue and number then giveUp(queueKey, number, tail, owner) end
  if holder and holder ~= owner then return 0 end
  -- First, also where the lock is passed on: without memory to spare, Redis lets a script begin with this only.
  if holder then redis.call('DEL', lockKey) end
  if isQueue then grantNext(lockKey, queueKey, fenceKey) end
  return holder and 1 or 0
end
`;

/**
 * `acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters)`: the whole of acquire, where the lock
 * may be held or waited for. Gives the reply of the script. Needs GRANT and HOLDER.
 */
export const ACQUIRING = `
local function acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters)
  -- Read before anything is written: whatever is wrong with a key must not leave a lock behind.
  local number, tail = findPlace(queueKey, owner)
  local holder, token = readHolder(lockKey)
  if not holder then
    -- Its holder died: the first waiter is next, be it this one or another.
    local _, first = firstWaiter(queueKey)
    if first and first ~= owner and grantNext(lockKey, queueKey, fenceKey) then
      holder, token = readHolder(lockKey)
    end
    number, tail = findPlace(queueKey, owner)
  end
  if not holder or holder == owner then
    if number then leaveQueue(queueKey, number, owner) end
    if not holder then return takeLock(lockKey, fenceKey, owner, mode, leaseMs) end
    lengthen(lockKey, leaseMs)
    return tonumber(token)
  end
  if sentAt == '' then return { 'busy', holderTtl(lockKey) } end
  local joined = joinQueue(queueKey, number, tail, owner, mode, leaseMs, sentAt, tonumber(maxWaiters))
  return { joined and 'queued' or 'full', holderTtl(lockKey) }
end
`;
