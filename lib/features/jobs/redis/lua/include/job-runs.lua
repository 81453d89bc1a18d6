-- The history of a job: a list of texts, the newest first. Each is "tick startedAt flags instance token", and once the
-- run has ended also " endedAt outcome name code message". The flags have an r for each earlier run of the same
-- tick. A tick that was missed is "due noticedAt x instance". Fields are encoded, and "-" is an empty one. If one of these
-- commands fails, only the history lacks something.

-- How many entries to search for a run that has not ended: only missed ticks can be in between.
local function recentRuns(runsKey)
  local entries = redis.pcall('LRANGE', runsKey, 0, 63)
  return entries.err and {} or entries
end

local function addRuns(runsKey, historySize, ...)
  if tonumber(historySize) < 1 then return redis.pcall('DEL', runsKey) end
  redis.pcall('LPUSH', runsKey, ...)
  redis.pcall('LTRIM', runsKey, 0, historySize - 1)
end

-- Deletes the newest run of a tick, if it is this attempt and has not ended. An earlier attempt has crashed, and stays.
local function dropOpenRun(runsKey, tick, attempt)
  for _, run in ipairs(recentRuns(runsKey)) do
    if string.sub(run, 1, #tick + 1) == tick .. ' ' then
      local reruns = string.match(run, '^%S+ %d+ (r*)[-mc]* %S+ %d+$')
      if reruns and #reruns == attempt - 1 then redis.pcall('LREM', runsKey, 1, run) end
      return
    end
  end
end
