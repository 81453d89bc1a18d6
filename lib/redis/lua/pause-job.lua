-- Pauses a singleton job for the whole fleet, or resumes it.
--
-- KEYS   1  pause
--        2  record
--        3  the last accounted tick of the job
-- ARGV   1  'pause' or 'resume'
--        2  when the pause ends, in milliseconds since 1970; 0 for one that does not end by itself
--        3  who asks for it
--        4  how long Redis keeps the record, and the last accounted tick, in milliseconds
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
  -- Known after its end as well: what was due during the pause was not missed.
  redis.pcall('HSET', KEYS[2], 'pause', string.format('%.0f ', at) .. ARGV[2])
  redis.pcall('PEXPIRE', KEYS[2], keepFor(KEYS[2], ARGV[2], ARGV[4]))
end
return standing
