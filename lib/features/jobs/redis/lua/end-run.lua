-- Releases the lock of a singleton job like release.lua, and records in the history how its run ended, even if the
-- lease was lost before.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  history
--        5  record
-- ARGV   1  owner
--        2  fencing token of the run
--        3  'ok', 'error' or 'lost'; 'none' for a run that never began: its entry is deleted
--        4  name, code and message of the error, encoded for the history, with a space between them
--        5  if given: grants nothing
-- Reply  like release.lua

-- @include clock
-- @include granting
-- @include releasing
-- @include passed-on
-- @include job-runs

local lockKey, queueKey, fenceKey, runsKey, recordKey = unpack(KEYS)
local owner, token, outcome, errorTexts = unpack(ARGV, 1, 4)

-- First: when out of memory, Redis only lets a script begin with a deletion.
local done = passedOn((releaseLock(lockKey, queueKey, not ARGV[5] and fenceKey, owner)))
local open = ' ' .. token
local hasEnded = false
local function findRun(first, last)
  local entries = redis.pcall('LRANGE', runsKey, first, last)
  for index, run in ipairs(entries.err and {} or entries) do
    -- An ended run has a message at its end.
    if string.sub(run, -#open) == open and string.match(run, '^%S+ %d+ [-rmc]+ %S+ %d+$') then return first + index - 1, run end
    hasEnded = hasEnded or string.find(run, open .. ' ', 1, true) ~= nil
  end
end
local index, run = findRun(0, 63)
-- Many ticks were missed while it ran.
if not index and not hasEnded then index, run = findRun(64, -1) end
if index and outcome == 'none' then
  redis.pcall('LREM', runsKey, 1, run)
elseif index then
  redis.pcall('LSET', runsKey, index, run .. ' ' .. now .. ' ' .. outcome .. ' ' .. errorTexts)
end
-- A repeated command changes nothing.
local isFirst = index or (done % 2 == 1 and not hasEnded)
-- Without a history and a record, the run leaves nothing behind.
local isKept = outcome == 'ok' and isFirst and (index or redis.call('PTTL', recordKey) ~= -2)
if isKept and redis.pcall('HSET', recordKey, 'ok', now) == 1 and redis.call('PTTL', recordKey) < 0 then
  -- There was no record: it lasts as long as the history.
  redis.call('PEXPIRE', recordKey, string.format('%.0f', math.max(redis.call('PTTL', runsKey), 604800000)))
end
return done
