/**
 * The time in milliseconds. Only Redis's own clock counts, and it is read once per script, because it moves on while one
 * runs.
 */
export const CLOCK = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
`;

/**
 * `mintToken(fenceKey)`: the next fencing token. tick = max(last tick + 1, whole milliseconds since 2020-01-01 in units of
 * 10 µs); token = tick * 32, which leaves room to number hand-overs inside one tenure. With the clock as a floor, tokens grow
 * even when Redis lost its data; the ticks stay behind the clock up to 100,000 grants a second. Lua numbers print with 14
 * digits unless they are told otherwise. Needs CLOCK.
 */
export const FENCE = `
local function mintToken(fenceKey)
${mint('fenceKey')}
  return token
end
`;

/** The body of `mintToken`: sets `token`. On the fast path it stands alone, which spares Redis a function. Needs CLOCK. */
export function mint(fenceKey: string): string {
  return `
  -- One command nearly always: the floor has to be set only once in a millisecond.
  local tick = redis.pcall('INCR', ${fenceKey})
  if type(tick) == 'table' then
    -- Somebody else's text: LLEN raises Redis's own WRONGTYPE for it.
    if string.find(tick.err, 'integer') then redis.call('LLEN', ${fenceKey}) end
    tick = redis.call('INCR', ${fenceKey})
  end
  local floor = (now - 1577836800000) * 100
  if tick < floor then
    -- A count that begins anew: Redis lost its data. Then it goes on above all that this millisecond may have seen.
    tick = tick == 1 and floor + 100 + math.floor(clock[2] % 1000 / 10) or floor
    redis.call('SET', ${fenceKey}, string.format('%.0f', tick))
  end
  local token = tick * 32`;
}

/**
 * `takeLock(lockKey, fenceKey, owner, mode, leaseMs)`: writes the lock of one owner, with a new token, which it gives.
 * Needs FENCE.
 */
export const TAKE = `
local function takeLock(lockKey, fenceKey, owner, mode, leaseMs)
  local token = mintToken(fenceKey)
  local text = string.format('%.0f', token)
  if mode == 'exclusive' then
    redis.call('SET', lockKey, owner .. ' ' .. text, 'PX', leaseMs)
  else
    -- Changes nothing yet, but where an ACL forbids it, it fails here and not after HSET: a lock never stands without expiry.
    redis.call('PEXPIRE', lockKey, leaseMs)
    redis.call('HSET', lockKey, 'mode', mode, 'owner', owner, 'token', text, owner, 1)
    redis.call('PEXPIRE', lockKey, leaseMs)
  end
  return token
end
`;

/**
 * `readHolder(lockKey, text)`: owner, fencing token, and mode of whoever holds the lock; nothing when it is free. `text` is
 * what GET gave or raised, where the script has asked already.
 *
 * An exclusive lock is the string "owner token". One of a reentrant holder or a writer is a hash with the fields mode, owner,
 * token, and one named like the owner that holds the depth. One that is shared (see MEMBERS) has no single owner: then the
 * owner given is the empty string, and the fields that readMembers wants come after the mode. A key with anything else in it
 * is somebody else's: then it gives `false`, and no owner of ours holds anything.
 */
export const HOLDER = `
local function readHolder(lockKey, text)
  text = text or redis.pcall('GET', lockKey)
  if not text then return nil end
  if type(text) == 'string' then
    local owner, token = string.match(text, '^(%S+) (%d+)$')
    if owner then return owner, token, 'exclusive' end
    return false
  end
  -- Such as the NOPERM of a user who may not read.
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return redis.call('GET', lockKey) end
  local fields = redis.pcall('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized', 'owner', 'token')
  if fields.err and string.find(fields.err, 'WRONGTYPE', 1, true) then return false end
  if fields.err then return redis.call('HMGET', lockKey, 'mode') end
  if fields[6] then return fields[6], fields[7], fields[1] or 'reentrant' end
  if fields[1] and fields[2] and fields[3] then return '', nil, fields[1], fields end
  return false
end
`;

/** Raises Redis's own error, in every version, for somebody else's key: where readHolder gave `false`. */
export function refuse(lockKey: string): string {
  return `redis.call('LLEN', ${lockKey})
  return redis.call('GET', ${lockKey})`;
}

/** `lengthen(lockKey, leaseMs)` and `holderTtl(lockKey)`: how long a lock lasts. */
export const LEASE = `
-- The lease runs at least this much longer. Never less: a command that comes late must not cut what was extended since. Writes
-- in any case: whoever then waits for replicas waits for all that was written before, too.
local function lengthen(lockKey, leaseMs)
  local ttl = math.max(tonumber(leaseMs), redis.call('PTTL', lockKey))
  redis.call('PEXPIRE', lockKey, string.format('%.0f', ttl))
end

-- What is left of the holder's lease. A lock without one (somebody called PERSIST) never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
`;
