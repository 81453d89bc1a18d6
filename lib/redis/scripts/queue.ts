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
`;

/** `giveUp(queueKey, number, tail, owner)`: leaves the queue ungranted. Needs QUEUE. */
export const GIVING_UP = `
-- One who gives up at the end takes its number along: numbers that nobody has would have to be passed one by one.
local function giveUp(queueKey, number, tail, owner)
  leaveQueue(queueKey, number, owner)
  if tonumber(number) ~= tail or redis.call('EXISTS', queueKey) == 0 then return end
  repeat tail = tail - 1 until tail < 1 or redis.call('HGET', queueKey, string.format('%.0f', tail))
  redis.call('HSET', queueKey, 'tail', string.format('%.0f', tail))
end
`;

/**
 * `joinQueue(queueKey, number, tail, owner, mode, leaseMs, sentAt, maxWaiters)`, with what findPlace gave. Needs CLOCK and
 * QUEUE.
 */
export const JOINING = `
-- Joins the end, or renews the place it has. Gives false where there are as many waiters as the contender accepts.
local function joinQueue(queueKey, number, tail, owner, mode, leaseMs, sentAt, maxWaiters)
  local entry = owner .. ' ' .. mode .. ' ' .. string.format('%.0f', now + leaseMs) .. ' ' .. sentAt
  local ttl
  if number then
    ttl = redis.call('PTTL', queueKey)
    redis.call('HSET', queueKey, number, entry)
  else
    local length = redis.call('HLEN', queueKey)
    if (length - 2) / 2 >= maxWaiters then
      firstWaiter(queueKey)
      length = redis.call('HLEN', queueKey)
      if (length - 2) / 2 >= maxWaiters then return false end
    end
    -- Before anything is written, and after dead waiters may have taken the key with them.
    ttl = redis.call('PTTL', queueKey)
    number = tail + 1
    if length > 0 then
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
