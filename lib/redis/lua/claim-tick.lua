-- Claims one tick of a singleton job for the whole fleet, and takes the lock of the job with it. The claim is a
-- string:
--   <owner>           claimed; the owner was not granted the run yet
--   <owner> runs      the owner was granted the run
--   <owner> reruns    the same, after another owner had been granted it
--   returned          its owner gave the claim back before a run began; 'returned reruns' if an earlier run had begun
--   finished          the run is over
--
-- KEYS   1  lock
--        2  claim
--        3  fence
--        4  the last claimed tick of the job
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  how long Redis keeps the claim, in milliseconds
--        4  'skip' or 'wait': what to do while an earlier run holds the lock
--        5  what may be taken over from another owner while the lock is free: 'nothing', 'unbegun' or 'unfinished'
--        6  when the tick is due, in milliseconds since 1970; '' for a tick that is not a time
--        7  how much earlier it may be claimed, in milliseconds
--        8  how much later it may be claimed, in milliseconds
--        9  how long Redis keeps the last claimed tick, in milliseconds
-- Reply  { status, number, flag }, see TickReply
--          granted       the fencing token; 1 for a rerun
--          claimed       TTL of the lock in milliseconds; 0
--          taken         TTL of the lock in milliseconds; 1 if the run was granted
--          overlap       TTL of the lock in milliseconds; 0
--          late, early   how late the tick is, in milliseconds; 0
--          finished      0; 0

-- @include clock
-- @include fence
-- @include holder
-- @include lease
-- @include members
-- @include any-lock
-- @include take
-- @include tick-due

local owner, takeOver, due = ARGV[1], ARGV[5], ARGV[6]
local claim = redis.call('GET', KEYS[2])
if claim == 'finished' or (takeOver ~= 'nothing' and not claim) then return { 'finished', 0, 0 } end
local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
local isMine = claimant == owner
local rerun = (state == 'reruns' or (state == 'runs' and not isMine)) and 1 or 0
local holder = readLock(KEYS[1])
if holder and holder.owner == owner and holder.token then
  lengthen(KEYS[1], ARGV[2])
  return { 'granted', tonumber(holder.token), rerun }
end
local ttl = holder and holderTtl(KEYS[1]) or 0
if claim and not isMine and claimant ~= 'returned' then
  -- Whoever watches keeps the claim in memory, however long the run takes.
  if takeOver ~= 'nothing' then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  local isBegun = state ~= ''
  if holder or takeOver == 'nothing' or (isBegun and takeOver == 'unbegun') then
    return { 'taken', ttl, isBegun and 1 or 0 }
  end
end
if due ~= '' then
  if not claim then
    local refusal, lateMs = judgeTick(KEYS[4], due, ARGV[7], ARGV[8])
    if refusal then return { refusal, lateMs, 0 } end
  end
  noteTick(KEYS[4], due, ARGV[7], ARGV[9])
end
if holder and ARGV[4] == 'skip' then
  redis.call('SET', KEYS[2], 'finished', 'PX', ARGV[3])
  return { 'overlap', ttl, 0 }
end
local granted = owner .. (rerun == 1 and ' reruns' or ' runs')
if holder then
  -- What was granted stays so: this command may be an old one that comes late, after the run.
  redis.call('SET', KEYS[2], state == '' and owner or granted, 'PX', ARGV[3])
  return { 'claimed', ttl, 0 }
end
redis.call('SET', KEYS[2], granted, 'PX', ARGV[3])
return { 'granted', takeLock(KEYS[1], KEYS[3], owner, 'exclusive', ARGV[2]), rerun }
