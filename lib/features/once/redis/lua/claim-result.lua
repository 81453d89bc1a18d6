-- Acquires the lock of a call of once, unless there is a result: then the work need not run. One step, so that no call
-- that found no result runs the work after another one has stored it.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  result: '=' and the text, '-' for undefined, or '!' and the SHA-1 of the owner whose result must not be stored
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  the SHA-1 of a stored text that the caller cannot parse, and which counts as none; or ''
--        4  its label, if any
-- Reply  { 'kept', text, hash }: as the key has it. hash, if ARGV 3 is given: the SHA-1 of its bytes, some of which the
--        text may have lost
--        otherwise like acquire.lua without joining the queue

-- @include clock
-- @include granting
-- @include acquiring

-- Another program's key of another type counts as none, and is replaced.
local kept = redis.pcall('GET', KEYS[4])
if type(kept) == 'string' and string.find(kept, '^[=-]') and redis.sha1hex(kept) ~= ARGV[3] then
  return { 'kept', kept, ARGV[3] ~= '' and redis.sha1hex(kept) or nil }
end
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], 'exclusive', ARGV[2], '', 0, ARGV[4])
