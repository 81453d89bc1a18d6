-- Keeps places in queues: extends each to its lease from now. The mode and the label of a place stay.
--
-- KEYS   for each place: lock, queue
-- ARGV   1  when the command is sent, a whole number on the sender's clock
--        and for each place: the owner, its lease in milliseconds, and its last known position, from 1
-- Reply  for each place, in their order, one of these:
--          { TTL, holders, place, soonest }: it was kept. As in the reply of acquire.lua after 'queued'
--          0: the owner has to ask with acquire.lua. It has lost its place, or may be granted the lock, or can never be
--            granted it
--          the error of Redis as a text: another program's key, or one that the user may not use. The other places are
--            still kept

-- @include clock
-- @include queue
-- @include holder
-- @include admission
-- @include lease

-- How many fields of shared locks the script reads. If there are more, the owner has to ask.
local glances = 500

-- When the first lease of a shared lock ends according to its members, if all of them can be read: they have been renewed
-- since the lock was last scanned. Drops and counts nothing if a lease has expired: a script that grants does that.
local function soonestOf(lockKey, known)
  local page = glances > 0 and redis.call('HSCAN', lockKey, '0', 'COUNT', 100)
  if not page or page[1] ~= '0' then return known end
  local entries, soonest = page[2], 9000000000000000
  glances = glances - #entries / 2
  for index = 1, #entries, 2 do
    local lasts = tonumber(string.match(entries[index + 1], '^%d+ %d+ (%d+)'))
    if entries[index] == 'sweep' or (lasts and lasts <= now) then return known end
    if lasts then soonest = math.min(soonest, lasts) end
  end
  if soonest >= 1000000000000000 then return known end
  redis.call('HSET', lockKey, 'soonest', string.format('%.0f', soonest))
  return soonest
end

local function keep(lockKey, queueKey, owner, leaseMs, lastPlace)
  -- Most waiters have the same position as before. Then one command finds the place, how many are before it, and whether
  -- it is the only member of the queue, without watchers.
  local before, isOnly = lastPlace - 1, false
  local found = redis.call('ZRANGE', queueKey, 2 * before, 2 * before + 3)
  local data = found[1]
  if found[2] == owner then
    isOnly = before == 0 and #found == 3
  else
    local moved = findPlace(queueKey, owner)
    data = moved and redis.call('ZRANGE', queueKey, moved, moved, 'BYSCORE')[1]
    before = nil
  end
  local number, mode, stands, label = string.match(data or '', '^ (%d+) (%S+) (%d+) %d+ %d+(.*)$')
  if not number or tonumber(stands) <= now then return 0 end
  local holder, token, held, about, depth = readHolder(lockKey)
  if holder == nil or holder == owner then return 0 end
  if not holder then
    -- @inline refuse
  end
  -- A single holder excludes everyone else. A request for permits can never be granted then.
  local lock = { owner = holder, token = token, mode = held, about = about, depth = depth }
  if holder == '' or string.sub(mode, 1, 1) == 's' then
    if holder == '' then
      lock = {
        mode = held, used = tonumber(about[2]), soonest = tonumber(about[3]),
        total = tonumber(about[4]), resized = about[5] == '1',
      }
      if lock.soonest <= now then lock.soonest = soonestOf(lockKey, lock.soonest) end
    end
    local request = parseRequest(mode)
    -- Without a count, it was written by another program.
    if not request.count or isMismatch(lock, request) then return 0 end
    -- A shared lock that may have room: only acquire.lua finds out, for the first waiter.
    if lock.used and (lock.soonest <= now or lock.used <= 0 or admits(lock, request)) then
      local first, _, lasts = string.match(redis.call('ZRANGE', queueKey, 0, 0)[1], PLACE)
      if not first or first == number or tonumber(lasts) <= now then return 0 end
    end
  end

  local expiry = now + leaseMs
  local place, soonest = ' ' .. mode .. ' ' .. expiry .. ' ' .. ARGV[1] .. ' ' .. leaseMs .. label, expiry
  -- @inline keep-place
  if isOnly or redis.call('PTTL', queueKey) < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  if not isOnly then
    -- @inline soonest-end
  end
  if held == 'read' then soonest = math.max(now + 1, math.min(soonest, lock.soonest)) end
  -- If a lease has expired, it has to ask in a moment, which scans the lock even if the first waiter is dead.
  local ttl = (held == 'semaphore' or lock.soonest and lock.soonest <= now) and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  -- @inline seen-holders
  return { ttl, seen, before + 1, soonest - now }
end

local replies = {}
for place = 1, (#ARGV - 1) / 3 do
  -- By the arguments: on a cluster there is one more key.
  local lock, first = 2 * place - 1, 3 * place - 1
  local isDone, reply = pcall(keep, KEYS[lock], KEYS[lock + 1], ARGV[first], ARGV[first + 1], ARGV[first + 2])
  if not isDone then
    -- @inline own-error
  end
  replies[#replies + 1] = reply
end
return replies
