import { defineScript } from './script.js';

/**
 * Whether locks may be granted by a fence, or leases may still run that Redis has forgotten. It has forgotten none if it was not
 * started lately; or if the fence is there, and was read from a log that has every write (an AOF, not a snapshot). Changes nothing.
 *
 * KEYS  1 fence
 * ARGV  1 the longest lease anybody takes, in milliseconds
 * Reply -1: whatever the fence. 0: by this fence. More: not for so many milliseconds
 */
export const QUARANTINE = defineScript(
  'quarantine',
  `
-- Whole seconds, by a clock that counts whole seconds as well.
local upSeconds = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
if not upSeconds then return redis.error_reply('ERR INFO server does not say uptime_in_seconds') end
local leftMs = ARGV[1] + 1000 - upSeconds * 1000
if leftMs <= 0 then return -1 end
if redis.call('EXISTS', KEYS[1]) == 1
    and string.find(redis.call('INFO', 'persistence'), 'aof_enabled:1', 1, true) then
  return 0
end
return leftMs
`,
);
