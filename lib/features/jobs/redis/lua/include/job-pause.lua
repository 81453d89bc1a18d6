-- readPause(pausedKey): since when a job is paused, until when (0: until it is resumed), who requested it, and why;
-- nothing if it is not paused.

local function readPause(pausedKey)
  local at, till, by = string.match(redis.call('GET', pausedKey) or '', '^(%d+) (%d+) (.*)$')
  return tonumber(at), tonumber(till), by
end
