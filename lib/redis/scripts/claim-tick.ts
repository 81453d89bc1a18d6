import { ANY_LOCK, MEMBERS } from './members.js';
import { defineScript } from './script.js';
import { CLOCK, FENCE, HOLDER, LEASE, TAKE } from './shared.js';
import { TICK_DUE } from './tick-due.js';

/**
 * Claims one tick of a singleton job for the whole fleet, and takes the job's lock with it. The claim is a string: the owner,
 * and behind it 'runs' once the owner was granted the run, or 'reruns' where another owner was granted it before; or
 * 'returned', likewise, when its owner gave it back; or 'finished'.
 *
 * KEYS  1 lock, 2 claim, 3 fence, 4 the last claimed tick of the job
 * ARGV  1 owner, 2 leaseMs, 3 how long the claim is remembered, in milliseconds, 4 'skip' or 'wait': what to do while an
 *       earlier run holds the lock, 5 what may be taken over from another owner while the lock is free: 'nothing', 'unbegun' or
 *       'unfinished', 6 when the tick is due, or '' for one that is no time; 7 and 8 how much earlier and later than that it
 *       may be claimed, 9 how long the last tick is remembered, all in milliseconds
 * Reply [status, number, flag]: the fencing token and whether it is a rerun (granted); the TTL of the lock in milliseconds
 *       (claimed), and whether the run was granted (taken); how late the tick is (late, early); see TickReply in core
 */
export const CLAIM_TICK = defineScript(
  'claimTick',
  CLOCK,
  FENCE,
  HOLDER,
  LEASE,
  MEMBERS,
  ANY_LOCK,
  TAKE,
  TICK_DUE,
  `
local owner, takeOver, due = ARGV[1], ARGV[5], ARGV[6]
local claim = redis.call('GET', KEYS[2])
if claim == 'finished' or (takeOver ~= 'nothing' and not claim) then return { 'finished', 0, 0 } end
local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
local isMine = claimant == owner
local rerun = (state == 'reruns' or (state == 'runs' and not isMine)) and 1 or 0
local holder = readLock(KEYS[1])
if holder and holder.owner == owner then
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
`,
);
