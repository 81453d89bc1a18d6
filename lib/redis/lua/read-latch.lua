-- Reads how far a latch has counted. Changes nothing.
--
-- KEYS   1  latch
-- ARGV   1  count
-- Reply  { count of the latch, how many are missing, TTL in milliseconds }; without a latch: the stated count,
--          twice, and 0

-- @include latch

local count, remaining = readLatch(KEYS[1])
if not count then return { tonumber(ARGV[1]), tonumber(ARGV[1]), 0 } end
return latchReply(KEYS[1], count, remaining)
