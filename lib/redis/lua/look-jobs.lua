-- Reads what is known of jobs at one moment. Changes nothing.
--
-- KEYS   of each job, one job after another: lock, last accounted tick, history, record, pause, instances
-- ARGV   1  how many runs to read of each
-- Reply  now, in milliseconds since 1970, and then for each job { last, token, record, pause, runs, instances }
--          last       '' if none is known
--          token      of the lock's holder, '' if it is free
--          record     its fields and values
--          pause      '' if the job is not paused
--          runs       the newest first; a few more than asked for
--          instances  names and times, the last seen first

-- @include clock
-- @include holder

local function listOf(reply)
  return type(reply) == 'table' and not reply.err and reply or {}
end

local jobs = { now }
-- A cluster adds a key at the end.
for base = 0, #KEYS - 6, 6 do
  local _, token = readHolder(KEYS[base + 1])
  local most = math.max(ARGV[1], token and 8 or 0)
  local runs = most > 0 and listOf(redis.pcall('LRANGE', KEYS[base + 3], 0, most - 1)) or {}
  if token and #runs == most then
    -- The run that goes on may stand behind ticks that were missed while it ran.
    local isFound, open = false, ' ' .. token
    for _, run in ipairs(runs) do isFound = isFound or string.sub(run, -#open) == open end
    for _, run in ipairs(isFound and {} or listOf(redis.pcall('LRANGE', KEYS[base + 3], most, -1))) do
      if string.sub(run, -#open) == open then runs[#runs + 1] = run end
    end
  end
  jobs[#jobs + 1] = {
    redis.call('GET', KEYS[base + 2]) or '',
    token or '',
    listOf(redis.pcall('HGETALL', KEYS[base + 4])),
    redis.call('GET', KEYS[base + 5]) or '',
    runs,
    listOf(redis.pcall('ZRANGE', KEYS[base + 6], 0, 999, 'REV', 'WITHSCORES')),
  }
end
return jobs
