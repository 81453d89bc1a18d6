-- Reads everything Redis knows about a resource at one moment. Changes nothing. For operators: unlike the scripts of a
-- lock, the time it takes grows with the number of holders and waiters.
--
-- KEYS   1  lock
--        2  queue
-- ARGV   none
-- Reply  { TTL, permits, holders, waiters }. No owner ids, because traces may show replies
--          TTL       in milliseconds
--          permits   the number of permits of a semaphore, otherwise 0
--          holders   as in seen-holders.lua, but all of them, and without a mode if the lock is free
--          waiters   a line for each, in the order of the queue: its client, and the text of its place; see queue.lua

-- @include clock
-- @include holder
-- @include lease

-- The part of an owner id before its secret.
local function clientOf(owner)
  return string.sub(string.match(owner, '^(%S+)/') or string.match(owner, '^[^/%s]*'), 1, 200)
end

local waiters = {}
-- The places come first, each with its data before its owner; then their expiries, and the watchers.
local members = redis.call('ZRANGE', KEYS[2], 0, -1)
for index = 1, #members, 2 do
  local expiry = string.match(members[index], '^ %d+ %S+ (%d+) %d+ %d')
  if not expiry or not members[index + 1] then break end
  if tonumber(expiry) > now then
    waiters[#waiters + 1] = clientOf(members[index + 1]) .. string.match(string.sub(members[index], 1, 400), '^[^\n]*')
  end
end
waiters = table.concat(waiters, '\n')

local holder, token, mode, about, depth = readHolder(KEYS[1])
if holder == false then
  -- @inline refuse lockKey=KEYS[1]
end
local lines, ttl, total = {}, 0, 0
if holder == '' then
  members = redis.call('HGETALL', KEYS[1])
  for index = 1, #members, 2 do
    if members[index] == 'total' then total = tonumber(members[index + 1]) or 0 end
    local expiry = string.match(members[index + 1], '^%d+ %d+ (%d+)')
    if expiry and tonumber(expiry) > now then
      ttl = math.max(ttl, expiry - now)
      lines[#lines + 1] = clientOf(members[index]) .. ' ' .. string.match(string.sub(members[index + 1], 1, 360), '^[^\n]*')
    end
  end
elseif holder then
  ttl = holderTtl(KEYS[1])
  lines[1] = string.format('%s %.7s %.20s %.0f ', clientOf(holder), depth or 1, token or 0, now + ttl)
    .. string.match(string.sub(about, 1, 320), '^[^\n]*')
end
local head = string.format('%.9s %d %.0f', lines[1] and mode or '', #lines, now)
return { ttl, total, head .. '\n' .. table.concat(lines, '\n'), waiters }
