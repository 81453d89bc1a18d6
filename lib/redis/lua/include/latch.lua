-- A latch: one hash.
--
-- count  how many count-downs open it
-- +<id>  an id that was counted: the number that is missing is what the hash lacks, so nothing can be counted twice
-- open   replaces those once it is open
--
-- readLatch(latchKey): its count, and how many are missing; nothing if there is none. Any other value at the key was
-- not written by this library, and is a WRONGTYPE error.
--
-- latchReply(latchKey, count, remaining): the reply of the scripts.

local function readLatch(latchKey)
  local fields = redis.call('HMGET', latchKey, 'count', 'open')
  local size, count = redis.call('HLEN', latchKey), tonumber(fields[1] or '')
  if count then return count, fields[2] and 0 or math.max(0, count + 1 - size) end
  -- Not a latch, so this raises Redis's own error.
  if size > 0 then return redis.call('LLEN', latchKey) end
end

local function latchReply(latchKey, count, remaining)
  return { count, remaining, math.max(0, redis.call('PTTL', latchKey)) }
end
