-- Ends the claim of a tick: its run has ended, and no process may rerun it. Or the owner gives the claim back before
-- its run began.
--
-- KEYS   1  claim
--        2  the history of the job, if one is returned
--        3  the record of the job
-- ARGV   1  owner
--        2  how long Redis keeps the claim, in milliseconds
--        3  'finished' or 'returned'
--        4  the tick, encoded for the history, if one is returned
--        5  for a catch-up: when the last of its ticks was due; otherwise ''
-- Reply  1: recorded, possibly by an earlier command
--        0: the claim belongs to another owner, or Redis has forgotten it

-- @include claim-text
-- @include job-unbegun

local claimKey, runsKey, recordKey = KEYS[1], KEYS[2], KEYS[3]
local owner, keepMs, to, entryTick, lastMissed = unpack(ARGV, 1, 5)

local claim = redis.call('GET', claimKey)
if claim and claim == to then return redis.call('PEXPIRE', claimKey, keepMs) end
local claimant, state, attempt = readClaim(claim)
if claimant ~= owner then return 0 end
-- A run that another owner may have begun stays begun.
local stands = to == 'returned' and writeClaim(to, attempt) or to
redis.call('SET', claimKey, stands, 'PX', keepMs)
if entryTick and state ~= '' then forgetRun(runsKey, recordKey, entryTick, attempt, lastMissed) end
return 1
