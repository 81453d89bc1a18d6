-- Reads everything Redis knows about a resource at one moment. Changes nothing. For operators: unlike the scripts
-- that make up a lock, the time it takes grows with the number of holders and waiters.
--
-- KEYS   1  lock
--        2  queue
-- ARGV   none
-- Reply  { mode, TTL, permits, holders, waiters, now }. No owner ids, because traces may show replies
--          mode      '' if the lock is free
--          TTL       in milliseconds
--          permits   of a semaphore, otherwise 0
--          holders   { instance, fencing token, TTL in milliseconds, depth, permits, label, kept } of each, one
--                    after another; '' for no label; kept: 1 where it was released, and stays taken
--          waiters   { instance, mode, permits, label, what is left of its place } of each in the order of the
--                    queue, one after another
--          now       the time of Redis in milliseconds

-- @include clock
-- @include holder
-- @include admission

-- What an owner id begins with.
local function instanceOf(owner)
  return string.match(owner, '^[^/]*')
end

-- 1 where it was released, and stays taken: see retain.lua. Looks at the end only: another program may have written 100 kB.
local function isKept(owner)
  return string.find(string.sub(owner, -41), '^/' .. string.rep('[^/]', 40) .. '$') and 1 or 0
end

local waiters = {}
-- The places come first, each with its data before its owner; then their expiries, and the watchers.
local members = redis.call('ZRANGE', KEYS[2], 0, -1)
for index = 1, #members, 2 do
  local mode, expiry, label = string.match(members[index], '^ %d+ (%S+) (%d+) %d+ ?(.*)$')
  if not mode or not members[index + 1] then break end
  if tonumber(expiry) > now then
    local request = parseRequest(mode)
    waiters[#waiters + 1] = instanceOf(members[index + 1])
    waiters[#waiters + 1] = request.mode
    waiters[#waiters + 1] = request.count or 1
    waiters[#waiters + 1] = string.sub(label, 1, 300)
    waiters[#waiters + 1] = expiry - now
  end
end

local holder, token, mode, label = readHolder(KEYS[1])
if holder == nil then return { '', 0, 0, {}, waiters, now } end
if not holder then
  -- @inline refuse lockKey=KEYS[1]
end
local ttl = redis.call('PTTL', KEYS[1])
if holder ~= '' then
  local depth = mode == 'exclusive' and 1 or tonumber(redis.call('HGET', KEYS[1], holder)) or 1
  return { mode, ttl, 0, { instanceOf(holder), token, ttl, depth, 1, string.sub(label or '', 1, 300), isKept(holder) }, waiters, now }
end
local holders, total, lastTtl = {}, 0, 0
members = redis.call('HGETALL', KEYS[1])
for index = 1, #members, 2 do
  if members[index] == 'total' then total = tonumber(members[index + 1]) or 0 end
  local permits, memberToken, expiry, mark = string.match(members[index + 1], '^(%d+) (%d+) (%d+) ?(.*)$')
  if permits and tonumber(expiry) > now then
    lastTtl = math.max(lastTtl, expiry - now)
    local member = { instanceOf(members[index]), memberToken, expiry - now, 1, tonumber(permits), string.sub(mark, 1, 300), isKept(members[index]) }
    for _, value in ipairs(member) do
      holders[#holders + 1] = value
    end
  end
end
if #holders == 0 then return { '', 0, 0, {}, waiters, now } end
return { mode, lastTtl, total, holders, waiters, now }
