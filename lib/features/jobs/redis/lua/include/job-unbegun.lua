-- forgetRun(runsKey, recordKey, tick, attempt, lastMissed): a granted run never began. Deletes its entry, and makes a
-- catch-up pending again. lastMissed is when the last of the ticks of a catch-up was due, or ''.

-- @include job-runs

local function forgetRun(runsKey, recordKey, tick, attempt, lastMissed)
  dropOpenRun(runsKey, tick, attempt)
  local record = lastMissed ~= '' and redis.pcall('HMGET', recordKey, 'owed', 'span') or {}
  if not record[1] and record[2] and string.match(record[2], '^%d+ %d+ (%d+)') == lastMissed then
    redis.pcall('HSET', recordKey, 'owed', lastMissed)
  end
end
