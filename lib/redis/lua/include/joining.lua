-- joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, maxWaiters, about): number is the result of findPlace.
-- about: see holder.lua.

-- @include clock
-- @include queue

-- Joins the end, or renews its place. Returns its place, from 1, and the milliseconds until the first unexpired place
-- expires; or false if there are as many waiters as the caller accepts, not counting expired places.
local function joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, maxWaiters, about)
  local expiry, ttl, before, soonest = now + leaseMs, nil, nil, nil
  local place = ' ' .. mode .. ' ' .. expiry .. ' ' .. sentAt .. ' ' .. about
  if number then
    ttl = redis.call('PTTL', queueKey)
    local data = redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
    -- @inline keep-place
  else
    local length, last, edge = redis.call('ZCARD', queueKey) / 3, 0, nil
    soonest = expiry
    if length > 0 then
      -- The border between places and expiries: the last number, and the soonest expiry.
      edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
      if length % 1 > 0 or string.sub(edge[1], 1, 1) == '#' or string.sub(edge[3], 1, 1) ~= '#' then
        -- Watchers come after them, and do not count.
        length = redis.call('ZCOUNT', queueKey, '-inf', '(100000000000000') / 3
        edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
        if length % 1 > 0 or (length > 0 and string.sub(edge[3], 1, 1) ~= '#') then
          -- Another program has written between the places. Drops that.
          local members, kept, gone, open = redis.call('ZRANGE', queueKey, 0, 599), {}, {}, nil
          for _, member in ipairs(members) do
            if string.find(member, PLACE) then
              open = member
            elseif open and string.find(member, '^[^ #!].*/') then
              kept[open], kept[member], kept['#' .. string.match(open, PLACE)] = true, true, true
              open = nil
            end
          end
          for _, member in ipairs(members) do
            if not kept[member] and string.sub(member, 1, 1) ~= '!' then gone[#gone + 1] = member end
          end
          if next(kept) and #gone > 0 then redis.call('ZREM', queueKey, unpack(gone)) end
          length = redis.call('ZCOUNT', queueKey, '-inf', '(100000000000000') / 3
          edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
          -- Not a queue, so this raises Redis's own error.
          if length % 1 > 0 or (length > 0 and string.sub(edge[3], 1, 1) ~= '#') then return redis.call('LLEN', queueKey) end
        end
      end
    end
    if length > 0 then
      if length >= maxWaiters and redis.call('ZCOUNT', queueKey, '(' .. now, '(100000000000000') >= maxWaiters then
        return false
      end
      last, soonest = edge[2], math.min(tonumber(edge[4]), expiry)
      if soonest <= now then
        -- Drops some expired places, wherever they are: more than join, so that they do not pile up.
        local due, gone = redis.call('ZRANGE', queueKey, 2 * length, 2 * length + 15, 'WITHSCORES'), {}
        for index = 1, #due, 2 do
          if tonumber(due[index + 1]) > now then break end
          local dead = string.sub(due[index], 2)
          local members = redis.call('ZRANGE', queueKey, dead, dead, 'BYSCORE')
          gone[#gone + 1], gone[#gone + 2], gone[#gone + 3] = due[index], members[1], members[2]
        end
        redis.call('ZREM', queueKey, unpack(gone))
        length = length - #gone / 3
      end
    end
    -- Last, because dead waiters may have taken the key with them.
    ttl = redis.call('PTTL', queueKey)
    -- Changes nothing without a key, but fails here if an ACL forbids it: a queue never exists without expiry.
    if ttl < 0 then redis.call('PEXPIRE', queueKey, leaseMs) end
    number, before = last + 1, length
    redis.call('ZADD', queueKey, number, owner, number, ' ' .. number .. place, expiry, '#' .. number)
  end
  if ttl < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  if not soonest or soonest <= now then
    -- @inline soonest-end
  end
  return before + 1, soonest - now
end
