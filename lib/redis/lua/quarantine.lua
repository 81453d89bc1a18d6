-- Reads what a client needs to decide whether leases that Redis has forgotten may still be held. Changes nothing.
--
-- KEYS   1  fence
-- ARGV   none
-- Reply  { run id, uptime in whole seconds, Redis's time in milliseconds, data }. data is 0 without this fence; 2 if
--          there is an append-only file; otherwise 1. None of them proves that nothing was forgotten

local info = redis.call('INFO')
local upSeconds = string.match(info, 'uptime_in_seconds:(-?%d+)')
if not upSeconds then return redis.error_reply('ERR INFO does not say uptime_in_seconds') end
local clock, data = redis.call('TIME'), redis.call('EXISTS', KEYS[1])
if data == 1 and string.find(info, 'aof_enabled:1', 1, true) then data = 2 end
return {
  string.match(info, 'run_id:(%w+)') or '', tonumber(upSeconds), clock[1] * 1000 + math.floor(clock[2] / 1000), data,
}
