-- Reads the state of jobs at one moment. Changes nothing.
--
-- KEYS   for each job in turn: lock, last accounted tick, history, record, pause, instances
-- ARGV   1  how many runs to read for each
--        2  how many instances to read for each
-- Reply  now, in milliseconds since 1970, and then four texts for each job. It is flat, with few parts: parsing
--        the parts of a reply takes a client longer than reading the jobs takes Redis.
--          facts      one per line, '' if unknown: 1 if there is a record, the last accounted
--                     tick, the token of the lock's holder, how many instances there are; and from the record: next, ok,
--                     missed, owed, span, pause, stated, other, schedule
--          pause      '' if the job is not paused
--          runs       each on a line, the newest first; a few more than requested
--          instances  name and time, each on a line, the last seen first

-- @include clock
-- @include holder

local function listOf(reply)
  return type(reply) == 'table' and not reply.err and reply or {}
end

-- A value written by another program counts as none.
local function textOf(key)
  local reply = redis.pcall('GET', key)
  return type(reply) == 'string' and reply or ''
end

local mostRuns, mostInstances = tonumber(ARGV[1]), tonumber(ARGV[2])
local jobs = { now }
-- A cluster adds a key at the end.
for base = 0, #KEYS - 6, 6 do
  local _, token = readHolder(KEYS[base + 1])
  local most = math.max(mostRuns, token and 8 or 0)
  local runs = most > 0 and listOf(redis.pcall('LRANGE', KEYS[base + 3], 0, most - 1)) or {}
  if token and #runs == most then
    -- A run in progress may come after ticks that were missed while it ran.
    local isFound, open = false, ' ' .. token
    for _, run in ipairs(runs) do isFound = isFound or string.sub(run, -#open) == open end
    for _, run in ipairs(isFound and {} or listOf(redis.pcall('LRANGE', KEYS[base + 3], most, -1))) do
      if string.sub(run, -#open) == open then runs[#runs + 1] = run end
    end
  end
  local record = listOf(redis.pcall('HMGET', KEYS[base + 4], 'next', 'ok', 'missed', 'owed', 'span', 'pause', 'schedule', 'stated', 'other'))
  local instances, count = {}, ''
  if mostInstances > 0 then
    instances = listOf(redis.pcall('ZRANGE', KEYS[base + 6], 0, mostInstances - 1, 'REV', 'WITHSCORES'))
    count = #instances / 2
    if count == mostInstances then count = redis.call('ZCARD', KEYS[base + 6]) end
  end
  local isKnown = record[1] or record[2] or record[3] or record[4] or record[5] or record[6] or record[7]
  local size = #jobs
  jobs[size + 1] = (isKnown and 1 or '') .. '\n' .. textOf(KEYS[base + 2]) .. '\n' .. (token or '') .. '\n' .. count .. '\n'
    .. (record[1] or '') .. '\n' .. (record[2] or '') .. '\n' .. (record[3] or '') .. '\n' .. (record[4] or '') .. '\n'
    .. (record[5] or '') .. '\n' .. (record[6] or '') .. '\n' .. (record[8] or '') .. '\n' .. (record[9] or '') .. '\n' .. (record[7] or '')
  jobs[size + 2] = textOf(KEYS[base + 5])
  jobs[size + 3] = #runs == 1 and runs[1] or table.concat(runs, '\n')
  jobs[size + 4] = table.concat(instances, '\n')
end
return jobs
