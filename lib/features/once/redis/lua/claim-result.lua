-- Takes the lock of a call of once, unless a result is kept: then its work need not run. One step, so no call that has
-- found no result runs its work after another one has stored it.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  result: '=' and the text, '-' for undefined, or '!' and the SHA-1 of the owner whose result is not to be kept
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  the SHA-1 of a kept text that the caller cannot read, and which counts as none; or ''
--        4  its label, if any
-- Reply  { 'kept', text, hash }: as the key has it. hash: the SHA-1 of its bytes, of which text may have lost some; if
--        ARGV 3 is given
--        otherwise as acquire.lua to a caller that leaves the queue alone

-- @include clock
-- @include granting
-- @include acquiring

-- Another program's key of another type counts as none, and is replaced.
local kept = redis.pcall('GET', KEYS[4])
if type(kept) == 'string' and string.find(kept, '^[=-]') and redis.sha1hex(kept) ~= ARGV[3] then
  return { 'kept', kept, ARGV[3] ~= '' and redis.sha1hex(kept) or nil }
end
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], 'exclusive', ARGV[2], '', 0, ARGV[4])
