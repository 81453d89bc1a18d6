-- Makes a singleton job known, and notes that an instance has it. Without a record of the same schedule, all ticks until
-- now are accounted: then none of them was missed.
--
-- KEYS   1  record
--        2  the last accounted tick of the job
--        3  instances
--        4  history
-- ARGV   1  the instance, as an owner id
--        2  the schedule, or ''
--        3  when the next tick is due, in milliseconds since 1970, or ''
--        4  how long the record outlives the next tick, in milliseconds
-- Reply  1

-- @include clock
-- @include job-record
-- @include job-instances

local record = readRecord(KEYS[1])
local ttl = keepFor(KEYS[1], ARGV[3], ARGV[4])
local last = tonumber(redis.call('GET', KEYS[2]) or '')
if ARGV[2] ~= '' and (record.schedule ~= ARGV[2] or not last) then
  local since = string.format('%.0f', now)
  if not last or last < now then redis.call('SET', KEYS[2], since, 'PX', ttl) end
  redis.call('HDEL', KEYS[1], 'owed', 'since')
  if not last then redis.call('HSET', KEYS[1], 'since', since) end
end
redis.call('HSET', KEYS[1], 'schedule', ARGV[2], 'due', ARGV[3], 'stated', string.format('%.0f', now))
if ARGV[2] == '' then redis.call('HDEL', KEYS[1], 'schedule') end
redis.pcall('ZREM', KEYS[3], string.match(ARGV[1], '^[^/]*'))
noteInstance(KEYS[3], ARGV[1], ARGV[4])
keepJob(KEYS[1], KEYS[4], KEYS[3], ttl)
return 1
