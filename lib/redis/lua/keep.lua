-- Keeps places in queues: each then lasts for its lease from now. Nothing else changes: no waiter joins a queue, and no
-- lock is taken, granted or freed. So it does no harm if it is executed late. The mode and the label of a place stay.
--
-- KEYS   of each place: lock, queue
-- ARGV   1  when the command is sent, a whole number on the sender's clock
--        and of each place: the owner, its lease in milliseconds
-- Reply  of each place, in their order, one of these:
--          { TTL, holders, place, soonest }: it was kept. The first three as acquire.lua replies them after 'queued',
--            and the fifth of those
--          0: the owner has to ask by acquire.lua. It has no place any more, or may be granted the lock, or can never
--            be granted it
--          the error of Redis as a text: another program's key, or one that the user may not use. The other places
--            are kept all the same

-- @include clock
-- @include queue
-- @include holder
-- @include admission
-- @include lease

local function keep(lockKey, queueKey, owner, leaseMs)
  local number = findPlace(queueKey, owner)
  local data = number and redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
  local isPlace, mode, stands, _, label = string.match(data or '', PLACE)
  if not isPlace or tonumber(stands) <= now then return 0 end
  local holder, lease, held, about = readHolder(lockKey)
  if holder == nil or holder == owner then return 0 end
  if not holder then
    -- @inline refuse
  end
  local request, lock = parseRequest(mode), { owner = holder, token = lease, mode = held, label = about }
  if holder == '' then
    lock = {
      mode = held, used = tonumber(about[2]), soonest = tonumber(about[3]),
      total = tonumber(about[4]), resized = about[5] == '1',
    }
  end
  -- Without a count, another program has written it.
  if not request.count or isMismatch(lock, request) then return 0 end
  -- A shared lock that may have room: only acquire.lua finds out, for the first waiter.
  if lock.used and (lock.soonest <= now or lock.used <= 0 or admits(lock, request)) then
    local first, _, lasts = string.match(redis.call('ZRANGE', queueKey, 0, 0)[1], PLACE)
    if not first or first == number or tonumber(lasts) <= now then return 0 end
  end

  local expiry, left = now + leaseMs, redis.call('PTTL', queueKey)
  local place = ' ' .. mode .. ' ' .. expiry .. ' ' .. ARGV[1] .. label
  local before, soonest
  -- @inline keep-place
  if left < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  -- @inline soonest-end
  if held == 'read' then soonest = math.max(now + 1, math.min(soonest, lock.soonest)) end
  local ttl = held == 'semaphore' and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  -- @inline seen-holders
  return { ttl, seen, before + 1, soonest - now }
end

local replies = {}
for index = 2, #ARGV, 2 do
  local isDone, reply = pcall(keep, KEYS[index - 1], KEYS[index], ARGV[index], ARGV[index + 1])
  if not isDone then
    -- A text in some versions; before Redis 7, it begins with the line of the script.
    reply = type(reply) == 'table' and reply.err or tostring(reply)
    if not string.find(reply, '^%u+ ') then reply = 'ERR ' .. reply end
    -- What else goes wrong concerns the server, such as READONLY.
    local isOfPlace = string.find(reply, 'WRONGTYPE', 1, true) or string.find(reply, 'NOPERM', 1, true)
      or string.find(reply, 'The user executing', 1, true)
    if not isOfPlace then return { err = reply } end
  end
  replies[#replies + 1] = reply
end
return replies
