/** KEYS: the lock. ARGV: the field, the lease in ms. Replies nil if it is granted, else for how long it is taken. */
export const TRY_LOCK = `
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return redis.call('PTTL', KEYS[1])
end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return nil
`;

/**
 * KEYS: the lock, the channel, the latch of this unlock. ARGV: the field, the lease in ms, how long the latch is kept,
 * PUBLISH or SPUBLISH. Replies 1 if the lock is free now, 0 if the thread has entered it more often, nil if it does not
 * hold it. An unlock whose reply was lost is sent again: its latch has the answer.
 */
export const UNLOCK = `
local answered = redis.call('GET', KEYS[3])
if answered then return tonumber(answered) end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return nil end
local isFree = 0
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  isFree = 1
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[4], KEYS[2], '0')
end
redis.call('SET', KEYS[3], isFree, 'PX', ARGV[3])
return isFree
`;

/** KEYS: the lock, the channel. ARGV: PUBLISH or SPUBLISH. Replies 1 if it was taken. */
export const FORCE_UNLOCK = `
local existed = redis.call('DEL', KEYS[1])
if existed == 1 then redis.call(ARGV[1], KEYS[2], '0') end
return existed
`;

/** KEYS: the lock. ARGV: the field, the lease in ms. Replies whether it is held. */
export const RENEW = `
local isHeld = redis.call('HEXISTS', KEYS[1], ARGV[1])
if isHeld == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return isHeld
`;
