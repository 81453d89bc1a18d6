-- The queue of a resource: one sorted set. Its waiters are numbered in order of arrival. Each has three
-- members:
--
-- <owner>                               score: its number
-- " <number> <mode> <expiry> <sentAt> <about>"
--                                       score: its number. Its place ends at the expiry, in Redis's time in
--                                       milliseconds; sentAt is the stamp of the command that set it, on the clock of
--                                       its sender; about is stored with its grant: see holder.lua
-- #<number>                             score: its expiry
--
-- Numbers are smaller than any time, so the set begins with the places in their order, data before owner. Then come
-- their expiries, the soonest first. The rank of a member is the number of waiters before it. A waiter that leaves
-- takes its members along, and the last one the key, which expires with the last of their places.
--
-- After them come the watchers: clients that wait until the lock is free, without a place. Each has one member:
--
-- !<watcher>                            score: when its watch ends, in milliseconds times 1000, plus a number below 1000
--                                       that its client has given it; see watch.lua
--
-- A script skips a bounded number of places: each costs some of budget. A script that stops there sets isCut;
-- granting.lua names the command that continues.

-- @include clock

-- The format of a place. isStrange: the sorted set has no place, so it belongs to another program. isWatched: there are
-- watchers, but no waiters. isPassedOn: the script itself passes what it frees to its next owner.
local PLACE, budget, isCut, isStrange = '^ (%d+) (%S+) (%d+) (%d+) (%d.*)$', 100, false, false
local isWatched, isPassedOn, isNotified = false, false, false

-- The number of the owner's place, if it has one. Anything but a sorted set belongs to another program: WRONGTYPE.
local function findPlace(queueKey, owner)
  return redis.call('ZSCORE', queueKey, owner)
end

local function leaveQueue(queueKey, number, owner, data)
  data = data or redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
  redis.call('ZREM', queueKey, owner, data, '#' .. number)
end

-- The first waiter whose place has not expired: its owner, number, mode, the time left of its place, its stamp, its data
-- and about. Drops the places before it. If there are too many of these for one script: an empty string.
local function firstWaiter(queueKey)
  local head = redis.call('ZRANGE', queueKey, '0', '1')
  while head[1] do
    local number, mode, expiry, sentAt, about = string.match(head[1], PLACE)
    if not number then
      if string.sub(head[1], 1, 1) == '!' then
        isWatched = true
        return nil
      end
    elseif tonumber(expiry) > now then
      return head[2] or ' ', number, mode, expiry - now, sentAt, head[1], about
    end
    if budget <= 0 then
      isCut = true
      return ''
    end
    local isDead, places, gone = number and true, redis.call('ZRANGE', queueKey, 0, 2 * budget - 1), {}
    local index = 1
    -- Drops what another program has written before a place or a watcher, and expiries without a place. Without anything
    -- of ours, the key is not ours.
    while places[index] do
      number, mode, expiry = string.match(places[index], PLACE)
      if isDead and (not number or tonumber(expiry) > now) then break end
      gone[#gone + 1] = places[index]
      if isDead then
        gone[#gone + 1] = '#' .. number
        -- Another program may have removed the owner.
        if string.sub(places[index + 1] or ' ', 1, 1) ~= ' ' then
          index = index + 1
          gone[#gone + 1] = places[index]
        end
      elseif number or string.find(places[index], '^!.+/') then
        gone[#gone], isStrange = nil, false
        break
      elseif not string.find(places[index], '^#%d+$') then
        isStrange = true
      end
      index, budget = index + 1, budget - 1
    end
    if isStrange then return nil end
    redis.call('ZREM', queueKey, unpack(gone))
    head = redis.call('ZRANGE', queueKey, '0', '1')
  end
end
