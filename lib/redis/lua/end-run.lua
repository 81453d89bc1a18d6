-- Releases the lock of a singleton job like release.lua, and notes in the history how its run ended. The end is noted
-- also where the lease was lost before.
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
-- Reply  as release.lua

-- @include clock
-- @include granting
-- @include releasing
-- @include passed-on
-- @include job-runs

-- First: without memory to spare, Redis lets a script begin with a deletion only.
local done = passedOn((releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1])))
local open = ' ' .. ARGV[2]
local hasEnded = false
local function findRun(first, last)
  local entries = redis.pcall('LRANGE', KEYS[4], first, last)
  for index, run in ipairs(entries.err and {} or entries) do
    -- One that has ended has a message at its end.
    if string.sub(run, -#open) == open and string.match(run, '^%S+ %d+ [-rmc]+ %S+ %d+$') then return first + index - 1, run end
    hasEnded = hasEnded or string.find(run, open .. ' ', 1, true) ~= nil
  end
end
local index, run = findRun(0, 63)
-- Many ticks were missed while it ran.
if not index and not hasEnded then index, run = findRun(64, -1) end
if index and ARGV[3] == 'none' then
  redis.pcall('LREM', KEYS[4], 1, run)
elseif index then
  redis.pcall('LSET', KEYS[4], index, run .. ' ' .. now .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
end
-- A command that is sent again changes nothing.
local isFirst = index or (done % 2 == 1 and not hasEnded)
-- Without a history and a record, the run leaves nothing behind.
local isKept = ARGV[3] == 'ok' and isFirst and (index or redis.call('PTTL', KEYS[5]) ~= -2)
if isKept and redis.pcall('HSET', KEYS[5], 'ok', now) == 1 and redis.call('PTTL', KEYS[5]) < 0 then
  -- There was no record: it lasts as long as the history.
  redis.call('PEXPIRE', KEYS[5], string.format('%.0f', math.max(redis.call('PTTL', KEYS[4]), 604800000)))
end
return done
