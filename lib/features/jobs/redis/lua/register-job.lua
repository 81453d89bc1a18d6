-- Registers a singleton job, and that an instance has it. Without a record of the same schedule, accounts all ticks until
-- now, so that none of them counts as missed. Or records that an instance was shut down, and no longer has the job.
--
-- KEYS   1  record
--        2  the last accounted tick of the job
--        3  instances
--        4  history
-- ARGV   1  the instance, as an owner id
--        2  the schedule, or ''
--        3  when the next tick is due, in milliseconds since 1970, or ''
--        4  how long the record outlives the next tick, in milliseconds
--        5  'leave' if the instance is shut down
--        6  the single date of the job, in milliseconds since 1970, or ''
--        7  a date that was due within this many milliseconds stays registered
-- Reply  1

-- @include clock
-- @include job-record
-- @include job-instances

local recordKey, lastKey, instancesKey, runsKey = unpack(KEYS)
local owner, schedule, nextAt, keepMs, command, date, startMs = unpack(ARGV, 1, 7)

if command == 'leave' then
  local left = redis.pcall('ZREM', instancesKey, string.match(owner, '^[^/]*'))
  if left == 1 and redis.call('EXISTS', instancesKey) == 0 and redis.call('EXISTS', recordKey) == 1 then
    redis.pcall('HSET', recordKey, 'down', string.format('%.0f', now))
  end
  return 1
end

local record = readRecord(recordKey)
local ttl = keepFor(recordKey, nextAt, keepMs)
local last = tonumber(redis.call('GET', lastKey) or '')
if schedule ~= '' and (record.schedule ~= schedule or not last) then
  local since = string.format('%.0f', now)
  if not last or last < now then redis.call('SET', lastKey, since, 'PX', ttl) end
  redis.call('HDEL', recordKey, 'owed', 'since')
  if not last then redis.call('HSET', recordKey, 'since', since) end
end
if record.schedule and schedule ~= '' and record.schedule ~= schedule then
  local since = string.format('%.0f', now)
  redis.call('HSET', recordKey, 'other', since .. ' ' .. since .. ' 0 ' .. record.by .. ' ' .. record.schedule)
end
if date ~= '' then
  local known = tonumber(redis.pcall('HGET', recordKey, 'date') or '')
  if not known or known > now or known + tonumber(startMs) < now then redis.call('HSET', recordKey, 'date', date) end
end
-- All instances had been shut down until now.
if record.down and not string.find(record.down, ' ') then
  redis.call('HSET', recordKey, 'down', record.down .. string.format(' %.0f', now))
end
-- For a job whose ticks have no order, the last claim reported when it may run next.
if schedule ~= '' or record.schedule or not record.stated then
  redis.call('HSET', recordKey, 'schedule', schedule, 'next', nextAt, 'stated', string.format('%.0f', now), 'by', string.match(owner, '^[^/]*'))
  if schedule == '' then redis.call('HDEL', recordKey, 'schedule') end
end
redis.pcall('ZREM', instancesKey, string.match(owner, '^[^/]*'))
noteInstance(instancesKey, owner, keepMs)
keepJob(recordKey, runsKey, instancesKey, ttl)
return 1
