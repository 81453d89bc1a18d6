/**
 * The time in milliseconds. Only Redis's own clock counts, and it is read once per script, because it moves on while one
 * runs.
 */
export const CLOCK = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
`;

/**
 * `mintToken(fenceKey)`: the next fencing token. tick = max(last tick + 1, time since 2020-01-01 in units of 10 µs);
 * token = tick * 32, which leaves room to number hand-overs inside one tenure. With the clock as a floor, tokens grow even
 * when Redis lost its data. Lua numbers print with 14 digits unless they are told otherwise.
 */
export const FENCE = `
local function mintToken(fenceKey)
  local tick = (clock[1] - 1577836800) * 100000 + math.floor(clock[2] / 10)
  -- No number: somebody else's key. LLEN raises Redis's own WRONGTYPE for it.
  local last = tonumber(redis.call('GET', fenceKey) or 0) or redis.call('LLEN', fenceKey)
  if last >= tick then tick = last + 1 end
  redis.call('SET', fenceKey, string.format('%.0f', tick))
  return tick * 32
end
`;

/**
 * `readHolder(lockKey)`: owner, fencing token, depth, and mode of whoever holds the lock; nothing when it is free.
 * An exclusive lock is the string "owner token". A reentrant one is a hash with the fields owner, token, and one named
 * like the owner that holds the depth. A key with anything else in it is somebody else's, and a WRONGTYPE error.
 */
export const HOLDER = `
local function readHolder(lockKey)
  local text = redis.pcall('GET', lockKey)
  if not text then return nil end
  local owner, token
  if type(text) == 'string' then
    owner, token = string.match(text, '^(%S+) (%d+)$')
    if owner then return owner, token, 1, 'exclusive' end
  else
    local fields = redis.call('HMGET', lockKey, 'owner', 'token')
    owner, token = fields[1], fields[2]
    if owner then return owner, token, tonumber(redis.call('HGET', lockKey, owner)), 'reentrant' end
  end
  -- Not a lock, so one of these raises Redis's own error, in every version: WRONGTYPE, or the NOPERM of the GET above.
  redis.call('LLEN', lockKey)
  return redis.call('GET', lockKey)
end

-- What is left of the holder's lease. A lock without one (somebody called PERSIST) never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
`;

/**
 * `wakeNext(waitersKey, inboxPrefix, encodedResource)`: tells the waiting instance not heard of for longest that the lock
 * is free. One whose inbox nobody listens to is dead and is passed over; one that has not been heard of for a while is,
 * too. Where an ACL forbids the channel, or the key of the waiters is somebody else's, the lock is freed all the same (an
 * error has no first element), and the waiters find out by their heartbeat.
 */
export const WAKE = `
local function wakeNext(waitersKey, inboxPrefix, encodedResource)
  while true do
    local waiter = redis.pcall('ZPOPMIN', waitersKey)
    if not waiter[1] then return end
    if tonumber(waiter[2]) >= now then
      local receivers = redis.pcall('PUBLISH', inboxPrefix .. waiter[1], encodedResource)
      if type(receivers) == 'table' or receivers > 0 then return end
    end
  end
end
`;

/** `takeLock(lockKey, fenceKey, owner, mode, leaseMs)`: writes the lock, with a new token, which it gives. Needs FENCE. */
export const TAKE = `
local function takeLock(lockKey, fenceKey, owner, mode, leaseMs)
  local token = mintToken(fenceKey)
  local text = string.format('%.0f', token)
  if mode == 'reentrant' then
    -- Changes nothing yet, but where an ACL forbids it, it fails here and not after HSET: a lock never stands without expiry.
    redis.call('PEXPIRE', lockKey, leaseMs)
    redis.call('HSET', lockKey, 'owner', owner, 'token', text, owner, 1)
    redis.call('PEXPIRE', lockKey, leaseMs)
  else
    redis.call('SET', lockKey, owner .. ' ' .. text, 'PX', leaseMs)
  end
  return token
end
`;
