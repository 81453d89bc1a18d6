import { ANY_LOCK, MEMBERS } from './members.js';
import { defineScript } from './script.js';
import { CLOCK, FENCE, HOLDER, LEASE, TAKE } from './shared.js';

/**
 * Claims one tick of a singleton job for the whole fleet, and takes the job's lock with it. The claim is the string of its
 * owner, or 'finished'.
 *
 * KEYS  1 lock, 2 claim, 3 fence
 * ARGV  1 owner, 2 leaseMs, 3 how long the claim is remembered, in milliseconds, 4 'skip' or 'wait': what to do while an
 *       earlier run holds the lock, 5 '1' to take over an unfinished tick of somebody else whose lock is free
 * Reply [status, fencing token (granted) or TTL of the lock in milliseconds (claimed, taken)]; see TickReply in core
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
  `
local owner, rescue = ARGV[1], ARGV[5] == '1'
local claimant = redis.call('GET', KEYS[2])
if claimant == 'finished' or (rescue and not claimant) then return { 'finished', 0 } end
local holder = readLock(KEYS[1])
if holder and holder.owner == owner then
  lengthen(KEYS[1], ARGV[2])
  return { 'granted', tonumber(holder.token) }
end
local ttl = holder and holderTtl(KEYS[1]) or 0
if claimant and claimant ~= owner then
  -- Whoever watches keeps the claim in memory, however long the run takes.
  if rescue then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  if holder or not rescue then return { 'taken', ttl } end
end
if holder and ARGV[4] == 'skip' then
  redis.call('SET', KEYS[2], 'finished', 'PX', ARGV[3])
  return { 'overlap', ttl }
end
redis.call('SET', KEYS[2], owner, 'PX', ARGV[3])
if holder then return { 'claimed', ttl } end
return { 'granted', takeLock(KEYS[1], KEYS[3], owner, 'exclusive', ARGV[2]) }
`,
);
