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

-- @include job-unbegun

local claim = redis.call('GET', KEYS[1])
if claim and claim == ARGV[3] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
if claimant ~= ARGV[1] then return 0 end
-- A run that another owner may have begun stays one.
local stands = state == 'reruns' and ARGV[3] == 'returned' and 'returned reruns' or ARGV[3]
redis.call('SET', KEYS[1], stands, 'PX', ARGV[2])
if ARGV[4] and state ~= '' then forgetRun(KEYS[2], KEYS[3], ARGV[4], ARGV[5]) end
return 1
