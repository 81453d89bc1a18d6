-- now: the time in milliseconds. clock: the reply of TIME. Only Redis's own clock counts. A script reads it once,
-- because it advances while the script runs.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000
