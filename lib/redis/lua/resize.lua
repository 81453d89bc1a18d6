-- Sets the number of permits of a semaphore in use, and grants the next waiters. No holder loses a permit.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  permits
--        2  if given: grants nothing
-- Reply  1: the semaphore has this many permits, or none is held
--        3: the same, and the sender has to continue granting
--        0: the resource is in use as something else; nothing was changed

-- @include clock
-- @include granting
-- @include passed-on
-- @include any-lock
-- @include resizing

local lock = readLock(KEYS[1])
if not lock then return 1 end
if lock.mode ~= 'semaphore' then return 0 end
resize(KEYS[1], lock, tonumber(ARGV[1]))
grantWaiting(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], lock)
return passedOn(1)
