-- Reads whether a latch is open. If it is not, notes that the client waits; asking again renews its place.
--
-- KEYS   1  latch
--        2  waiters of the latch: a sorted set of clients, scored by when their places end, in Redis's time in
--          milliseconds
-- ARGV   1  count
--        2  TTL of a new latch, in milliseconds
--        3  client
--        4  how long its place lasts, in milliseconds
-- Reply  { count of the latch, how many are missing, TTL in milliseconds }. If the count differs from the stated
--          one, nothing was changed

-- @include clock
-- @include latch
-- @include use-latch

-- Before anything is written: another program's key is a WRONGTYPE error.
redis.call('ZCARD', KEYS[2])
local count, remaining = useLatch(KEYS[1], ARGV[1], ARGV[2])
if count ~= tonumber(ARGV[1]) or remaining == 0 then return latchReply(KEYS[1], count, remaining) end

-- First, so that the key never stands without expiry: where an ACL forbids it, it fails here.
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[4]), ARGV[3]) == 1 then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  -- With each one that comes, some of those go whose process has died: more than come.
  local oldest, gone = redis.call('ZRANGE', KEYS[2], 0, 15, 'WITHSCORES'), {}
  for index = 1, #oldest, 2 do
    if tonumber(oldest[index + 1]) <= now then gone[#gone + 1] = oldest[index] end
  end
  if #gone > 0 then redis.call('ZREM', KEYS[2], unpack(gone)) end
end
return latchReply(KEYS[1], count, remaining)
