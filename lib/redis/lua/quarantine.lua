-- Reads what a client needs to decide whether leases may still run that Redis has forgotten. Changes nothing.
--
-- KEYS   1  fence
-- ARGV   none
-- Reply  { run id, uptime in whole seconds, Redis's time in milliseconds, 1 or 0 }. The last one is 1 if this fence
--          has forgotten no lease: it exists, and was read from a log that has every write (an AOF, not a snapshot)

local info = redis.call('INFO')
local upSeconds = string.match(info, 'uptime_in_seconds:(-?%d+)')
if not upSeconds then return redis.error_reply('ERR INFO does not say uptime_in_seconds') end
local clock = redis.call('TIME')
local hasAll = redis.call('EXISTS', KEYS[1]) == 1 and string.find(info, 'aof_enabled:1', 1, true)
return {
  string.match(info, 'run_id:(%w+)') or '', tonumber(upSeconds), clock[1] * 1000 + math.floor(clock[2] / 1000), hasAll and 1 or 0,
}
