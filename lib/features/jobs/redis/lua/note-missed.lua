-- Accounts ticks that no instance claimed: counts them, adds them to the history, and marks a catch-up as pending. If
-- several instances report the same ticks, only one gets the reply 'noted'.
--
-- KEYS   1  the last accounted tick of the job
--        2  history
--        3  record
--        4  pause
--        5  instances
-- ARGV   1  the schedule that the ticks are of
--        2  the accounted tick that they follow
--        3  how many runs the history keeps
--        4  a catch-up is pending if the last of them was due within this many milliseconds; '' for no catch-up
--        5  when the next tick is due, or ''
--        6  how long the record outlives the next tick, in milliseconds
--        7  minimum TTL of the last accounted tick in milliseconds
--        8  the reporting instance, as an owner id
--        9  how many ticks precede the ones that follow, and
--        10  when the first of these was due, or ''
--        11  when the last of these was due, or ''
--        then when the ticks were due, in milliseconds since 1970, the oldest first
-- Reply  { status, count, first, last, owed, ticks, isDown }
--          status  'noted', even if the same instance reported the same ticks before, or 'stale': then nothing was changed
--          count   how many of them count, without those due during a pause
--          owed    "count first last until" of the pending catch-up, or ''
--          ticks   the last of those that count
--          isDown  1 if all of them were due while all instances were shut down

-- @include clock
-- @include job-record
-- @include job-pause
-- @include job-runs

local lastKey, runsKey, recordKey, pauseKey, instancesKey = unpack(KEYS)
local schedule, after, historySize, runWithinMs, nextAt, recordKeepMs, lastKeepMs, owner = unpack(ARGV, 1, 8)
local earlierCount, earlierFirst, earlierLast = ARGV[9], ARGV[10], ARGV[11]

local record = readRecord(recordKey)
local function owedNow()
  local till = string.match(record.span or '', '(%d+)$')
  return record.owed and tonumber(till or 0) >= now and record.span or ''
end
local last = redis.call('GET', lastKey)
local told = after .. ' ' .. ARGV[#ARGV] .. ' ' .. owner
local isCurrent = last and tonumber(last) == tonumber(after) and record.schedule == schedule
-- The same instance gets the same reply again: the first one was lost. First, because most instances are rejected here.
if not isCurrent and record.told ~= told then return { 'stale', 0, 0, 0, owedNow(), {} } end
local pausedAt, pausedTill = readPause(pauseKey)
local pauses = {}
for from, till in string.gmatch(record.pause or '', '(%d+) (%d+)') do
  pauses[#pauses + 1] = { from = tonumber(from), till = tonumber(till) }
end
local function isPaused(tick)
  if pausedAt and tick >= pausedAt and (pausedTill == 0 or tick <= pausedTill) then return true end
  for _, pause in ipairs(pauses) do
    if tick >= pause.from and tick <= pause.till then return true end
  end
  return false
end

local ticks, entries, count, first = {}, {}, tonumber(earlierCount), tonumber(earlierFirst)
if count > 0 and isPaused(first) then count, first = 0, nil end
local instance = string.match(owner, '^[^/]*')
for index = 12, #ARGV do
  local tick = tonumber(ARGV[index])
  if not isPaused(tick) then
    ticks[#ticks + 1] = tick
    first = first or tick
    entries[#entries + 1] = ARGV[index] .. ' ' .. now .. ' x ' .. instance
  end
end
count = count + #ticks
local newest = ticks[#ticks] or tonumber(earlierLast)
local downFrom, downTill = string.match(record.down or '', '^(%d+) (%d+)$')
local isDown = downFrom and count > 0 and first >= tonumber(downFrom) and newest <= tonumber(downTill) and 1 or 0

if not isCurrent then
  if count > 0 then return { 'noted', count, first, newest, owedNow(), ticks, isDown } end
  return { 'stale', 0, 0, 0, owedNow(), {} }
end
local ttl = keepFor(recordKey, nextAt, recordKeepMs)
redis.call('SET', lastKey, ARGV[#ARGV], 'PX', string.format('%.0f', math.max(ttl, lastKeepMs)))
if count == 0 then return { 'noted', 0, 0, 0, owedNow(), {} } end

redis.pcall('HSET', recordKey, 'missed', string.format('%.0f', (tonumber(record.missed) or 0) + count), 'told', told)
if #entries > 0 then addRuns(runsKey, historySize, unpack(entries)) end
if runWithinMs ~= '' and newest + runWithinMs >= now then
  local owedCount, owedFirst = string.match(owedNow(), '^(%d+) (%d+)')
  local span = string.format('%.0f %.0f %.0f %.0f', count + (owedCount or 0), tonumber(owedFirst or first), newest, newest + runWithinMs)
  redis.pcall('HSET', recordKey, 'owed', string.format('%.0f', newest), 'span', span)
  record.owed, record.span = newest, span
end
keepJob(recordKey, runsKey, instancesKey, ttl)
return { 'noted', count, first, newest, owedNow(), ticks, isDown }
