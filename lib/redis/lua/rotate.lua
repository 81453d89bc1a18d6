-- Gives the lock of one instance back and queues for it again, in one round trip: the whole of release, then the
-- whole of acquire for the next waiter, which goes to the end of the queue.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  owner
--        2  owner id of the next waiter
--        3  its mode, as for acquire
--        4  its lease in milliseconds
--        5  when the command is sent, as for acquire
--        6  the largest number of waiters the caller accepts
--        7  its label, as for acquire
-- Reply  { reply of release, reply of acquire }

-- @include clock
-- @include granting
-- @include releasing
-- @include acquiring

-- The lock is never free in between.
isPassedOn = true
local released, isKnown, lock = releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1])
return {
  released,
  acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], isKnown, lock),
}
