-- Counts one id down, once. The last one opens the latch and tells the clients that wait for it: "latch count name"
-- in their inboxes. An open latch stays until its TTL is over, and at least until the places of its waiters are: a
-- client that missed the message finds it open.
--
-- KEYS   1  latch
--        2  waiters of the latch
-- ARGV   1  count
--        2  TTL of a new latch, in milliseconds
--        3  id
--        4  what the name of every inbox begins with
-- Reply  { count of the latch, how many are missing, TTL in milliseconds }. If the count differs from the stated
--          one, nothing was changed. A fourth element means: more clients have to be told

-- @include clock
-- @include latch
-- @include use-latch

-- Where an ACL forbids it, or another program's key stands there, nobody is told; they find it with their heartbeats.
local function tellWaiters(count)
  local waiters, gone = redis.pcall('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES'), {}
  local message = 'latch ' .. ARGV[1] .. ' ' .. string.match(KEYS[1], '{([^{}]*)}:latch$')
  for index = 1, #waiters, 2 do
    gone[#gone + 1] = waiters[index]
    if tonumber(waiters[index + 1]) > now then redis.pcall('PUBLISH', ARGV[4] .. waiters[index], message) end
  end
  local reply = latchReply(KEYS[1], count, 0)
  if #gone > 0 and type(redis.pcall('ZREM', KEYS[2], unpack(gone))) == 'number' and #gone == 100 then reply[4] = 1 end
  return reply
end

local count, remaining = useLatch(KEYS[1], ARGV[1], ARGV[2])
if count ~= tonumber(ARGV[1]) then return latchReply(KEYS[1], count, remaining) end
if remaining == 0 then return tellWaiters(count) end
redis.call('HSET', KEYS[1], '+' .. ARGV[3], '')
remaining = count + 1 - redis.call('HLEN', KEYS[1])
if remaining > 0 then return latchReply(KEYS[1], count, remaining) end

local lastsMs = redis.call('PTTL', KEYS[1])
if lastsMs < 0 then lastsMs = tonumber(ARGV[2]) end
local last = redis.pcall('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
-- No place is this long: another program may have written it.
lastsMs = math.max(1, lastsMs, math.min(10000000000, (tonumber(last[2] or '') or 0) - now))
-- The ids are not needed any more. A million of them would stop Redis for a third of a second in DEL; where an ACL forbids
-- UNLINK they stay until the latch expires.
redis.pcall('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'count', ARGV[1], 'open', '1')
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', lastsMs))
return tellWaiters(count)
