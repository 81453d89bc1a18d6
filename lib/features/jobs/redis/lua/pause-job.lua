-- Pauses a singleton job for the whole fleet, or resumes it.
--
-- KEYS   1  pause
--        2  record
--        3  the last accounted tick of the job
-- ARGV   1  'pause' or 'resume'
--        2  when the pause ends, in milliseconds since 1970; 0 for one that does not end by itself
--        3  who requests it, and why, as in the record
--        4  how long Redis keeps the record, and the last accounted tick, in milliseconds
--        5  how many pauses that end by themselves the record keeps
-- Reply  the previous pause: "at until by reason"; '' if there was none

-- @include clock
-- @include job-record
-- @include job-pause

local pauseKey, recordKey, lastKey = KEYS[1], KEYS[2], KEYS[3]
local command, untilAt, by, keepMs, mostPauses = unpack(ARGV, 1, 5)

local standing = redis.call('GET', pauseKey) or ''
if command == 'resume' then
  if standing == '' then return '' end
  redis.call('DEL', pauseKey)
  local record = readRecord(recordKey)
  if record.schedule then
    -- Ticks due during the pause were not missed.
    local last = tonumber(redis.call('GET', lastKey) or '') or 0
    local ttl = keepFor(recordKey, '', keepMs)
    if last < now then redis.call('SET', lastKey, string.format('%.0f', now), 'PX', ttl) end
  end
  redis.pcall('HDEL', recordKey, 'pause')
  return standing
end
local at = readPause(pauseKey) or now
local text = string.format('%.0f ', at) .. untilAt .. ' ' .. by
if untilAt == '0' then
  redis.call('SET', pauseKey, text)
else
  local left = math.max(1, untilAt - now)
  redis.call('SET', pauseKey, text, 'PX', string.format('%.0f', left))
  -- Remembered after its end: ticks due during the pause were not missed. Earlier pauses are remembered until their
  -- ticks are accounted. A replaced pause ends when the new one begins.
  local last = tonumber(redis.pcall('GET', lastKey) or '') or 0
  local pauses = {}
  for from, till in string.gmatch(readRecord(recordKey).pause or '', '(%d+) (%d+)') do
    if tonumber(till) > last and tonumber(from) ~= at then pauses[#pauses + 1] = from .. ' ' .. till end
  end
  pauses[#pauses + 1] = string.format('%.0f ', at) .. untilAt
  redis.pcall('HSET', recordKey, 'pause', table.concat(pauses, ' ', math.max(1, #pauses - mostPauses + 1)))
  redis.pcall('PEXPIRE', recordKey, keepFor(recordKey, untilAt, keepMs))
end
return standing
