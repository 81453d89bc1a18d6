-- Ends the claim of a tick: its run is over, and no process may rerun it. Or the owner gives the claim back before
-- its run began.
--
-- KEYS   1  claim
--        2  the history of the job, where one is returned
--        3  the record of the job
-- ARGV   1  owner
--        2  how long Redis keeps the claim, in milliseconds
--        3  'finished' or 'returned'
--        4  the tick, encoded for the history, where one is returned
--        5  of a catch-up: when the last of its ticks was due; otherwise ''
-- Reply  1: noted, also if it was noted before
--        0: the claim belongs to another owner, or Redis has forgotten it

-- @include job-runs

local claim = redis.call('GET', KEYS[1])
if claim and claim == ARGV[3] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
if claimant ~= ARGV[1] then return 0 end
-- A run that another owner may have begun stays one.
local stands = state == 'reruns' and ARGV[3] == 'returned' and 'returned reruns' or ARGV[3]
redis.call('SET', KEYS[1], stands, 'PX', ARGV[2])
if ARGV[4] and state ~= '' then
  -- It was granted, and did not begin.
  dropOpenRun(KEYS[2], ARGV[4])
  local record = ARGV[5] ~= '' and redis.pcall('HMGET', KEYS[3], 'owed', 'span') or {}
  if not record[1] and record[2] and string.match(record[2], '^%d+ %d+ (%d+)') == ARGV[5] then
    redis.pcall('HSET', KEYS[3], 'owed', ARGV[5])
  end
end
return 1
