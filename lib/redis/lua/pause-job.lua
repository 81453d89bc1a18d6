-- Pauses a singleton job for the whole fleet, or resumes it.
--
-- KEYS   1  pause
--        2  record
--        3  the last accounted tick of the job
-- ARGV   1  'pause' or 'resume'
--        2  when the pause ends, in milliseconds since 1970; 0 for one that does not end by itself
--        3  who asks for it
--        4  how long Redis keeps the record, and the last accounted tick, in milliseconds
--        5  how many pauses that end by themselves the record keeps
-- Reply  the pause that stood before: "at until by"; '' if there was none

-- @include clock
-- @include job-record
-- @include job-pause

local standing = redis.call('GET', KEYS[1]) or ''
if ARGV[1] == 'resume' then
  if standing == '' then return '' end
  redis.call('DEL', KEYS[1])
  local record = readRecord(KEYS[2])
  if record.schedule then
    -- What was due during the pause was not missed.
    local last = tonumber(redis.call('GET', KEYS[3]) or '') or 0
    local ttl = keepFor(KEYS[2], '', ARGV[4])
    if last < now then redis.call('SET', KEYS[3], string.format('%.0f', now), 'PX', ttl) end
  end
  redis.pcall('HDEL', KEYS[2], 'pause')
  return standing
end
local at = readPause(KEYS[1]) or now
local text = string.format('%.0f ', at) .. ARGV[2] .. ' ' .. ARGV[3]
if ARGV[2] == '0' then
  redis.call('SET', KEYS[1], text)
else
  local left = math.max(1, ARGV[2] - now)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', left))
  -- Known after its end as well: what was due during the pause was not missed. Those before it are known until their
  -- ticks are accounted. The one that it replaces began when it does.
  local last = tonumber(redis.pcall('GET', KEYS[3]) or '') or 0
  local pauses = {}
  for from, till in string.gmatch(readRecord(KEYS[2]).pause or '', '(%d+) (%d+)') do
    if tonumber(till) > last and tonumber(from) ~= at then pauses[#pauses + 1] = from .. ' ' .. till end
  end
  pauses[#pauses + 1] = string.format('%.0f ', at) .. ARGV[2]
  redis.pcall('HSET', KEYS[2], 'pause', table.concat(pauses, ' ', math.max(1, #pauses - ARGV[5] + 1)))
  redis.pcall('PEXPIRE', KEYS[2], keepFor(KEYS[2], ARGV[2], ARGV[4]))
end
return standing
