/**
 * The queue of a resource: one sorted set. Its waiters are numbered in the order they came, and each of them has three members:
 *
 * <owner>                               score: its number
 * " <number> <mode> <expiry> <sentAt>"  score: its number. Its place ends at `expiry`, Redis's time in milliseconds; `sentAt` is
 *                                       the stamp of the command that set it, on the clock of its sender
 * #<number>                             score: its expiry
 *
 * Numbers are smaller than any time, so the set begins with the places in their order, data before owner; then come their
 * expiries, the soonest first. The rank of a member says how many stand before it. Who leaves takes its members along, and the
 * last one the key, which expires with the last of their places.
 *
 * No script passes more than a bounded number of places: each costs some of `budget`. Where a script stops at that, it sets
 * `isCut`; who goes on is said in GRANTING.
 */
export const QUEUE = `
-- What a place is written like. isStrange: a sorted set stands there that is somebody else's.
local PLACE, budget, isCut, isStrange = '^ (%d+) (%S+) (%d+) (%d+)$', 100, false, false

-- The number of the owner's place, if it has one. What is not a sorted set is somebody else's key, and a WRONGTYPE error.
local function findPlace(queueKey, owner)
  return redis.call('ZSCORE', queueKey, owner)
end

local function leaveQueue(queueKey, number, owner, data)
  data = data or redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
  redis.call('ZREM', queueKey, owner, data, '#' .. number)
end

-- The first waiter whose place has not expired: its owner, number, mode, what is left of its place, its stamp and its data. The
-- places before it are dropped. Where there are too many of these for one script: an empty string.
local function firstWaiter(queueKey)
  local head = redis.call('ZRANGE', queueKey, 0, 1)
  while head[1] do
    local number, mode, expiry, sentAt = string.match(head[1], PLACE)
    if not number then
      isStrange = true
      return nil
    end
    if tonumber(expiry) > now then return head[2], number, mode, expiry - now, sentAt, head[1] end
    if budget <= 0 then
      isCut = true
      return ''
    end
    local places, gone = redis.call('ZRANGE', queueKey, 0, 2 * budget - 1), {}
    for index = 1, #places, 2 do
      number, mode, expiry = string.match(places[index], PLACE)
      if not number or tonumber(expiry) > now then break end
      gone[#gone + 1], gone[#gone + 2], gone[#gone + 3] = places[index], places[index + 1], '#' .. number
      budget = budget - 1
    end
    redis.call('ZREM', queueKey, unpack(gone))
    head = redis.call('ZRANGE', queueKey, 0, 1)
  end
end
`;

/** `joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, maxWaiters)`, with what findPlace gave. Needs CLOCK and QUEUE. */
export const JOINING = `
-- Joins the end, or renews the place it has. Gives false where there are as many waiters as the contender accepts; whose place
-- has expired does not count.
local function joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, maxWaiters)
  local expiry, ttl = now + leaseMs, nil
  local place = ' ' .. mode .. ' ' .. expiry .. ' ' .. sentAt
  if number then
    ttl = redis.call('PTTL', queueKey)
    local data = redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
    -- In this order nothing of the place is missing, wherever an ACL forbids to go on.
    redis.call('ZADD', queueKey, expiry, '#' .. number)
    redis.call('ZREM', queueKey, data)
    redis.call('ZADD', queueKey, number, ' ' .. number .. place)
  else
    local length, last = redis.call('ZCARD', queueKey) / 3, 0
    if length > 0 then
      -- Where the places end and their expiries begin: the last number, and the soonest expiry.
      local edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
      -- Not a queue, so this raises Redis's own error.
      if length % 1 > 0 or string.sub(edge[3], 1, 1) ~= '#' then return redis.call('LLEN', queueKey) end
      if length >= maxWaiters and redis.call('ZCOUNT', queueKey, '(' .. now, '+inf') >= maxWaiters then return false end
      last = edge[2]
      if tonumber(edge[4]) <= now then
        -- Some of the places that have expired are dropped, wherever they stand: more than come, so that they do not pile up.
        local due, gone = redis.call('ZRANGE', queueKey, 2 * length, 2 * length + 15, 'WITHSCORES'), {}
        for index = 1, #due, 2 do
          if tonumber(due[index + 1]) > now then break end
          local dead = string.sub(due[index], 2)
          local members = redis.call('ZRANGE', queueKey, dead, dead, 'BYSCORE')
          gone[#gone + 1], gone[#gone + 2], gone[#gone + 3] = due[index], members[1], members[2]
        end
        redis.call('ZREM', queueKey, unpack(gone))
      end
    end
    -- After dead waiters may have taken the key with them.
    ttl = redis.call('PTTL', queueKey)
    -- Changes nothing where there is no key, but where an ACL forbids it, it fails here: a queue never stands without expiry.
    if ttl < 0 then redis.call('PEXPIRE', queueKey, leaseMs) end
    number = last + 1
    redis.call('ZADD', queueKey, number, owner, number, ' ' .. number .. place, expiry, '#' .. number)
  end
  if ttl < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  return true
end
`;
