/**
 * A lock that several may hold: readers, or holders of the permits of a semaphore. One hash:
 *
 * mode      read | semaphore
 * used      how many permits are in use; of readers, how many there are
 * soonest   no member's lease ends before this, in Redis's time: until then nobody has to be looked for
 * total     semaphores: how many permits there are
 * resized   semaphores: 1 where somebody has decided on the total, 0 where everybody just states the same
 * <owner>   "permits token expiry" of a member. The lease of each ends by itself; the key, with the last of them
 *
 * An owner id contains a slash, so it is none of the other fields. Needs CLOCK.
 */
export const MEMBERS = `
-- A lock that is shared, without the members whose lease is over; nil if that were all of them. Give it the fields that
-- readHolder gave, where there are any.
local function readMembers(lockKey, fields)
  fields = fields or redis.call('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized')
  if not fields[1] then return nil end
  local lock = {
    mode = fields[1], used = tonumber(fields[2]), soonest = tonumber(fields[3]),
    total = tonumber(fields[4]), resized = fields[5] == '1',
  }
  if lock.soonest > now then return lock end
  lock.used, lock.soonest = 0, math.huge
  local entries = redis.call('HGETALL', lockKey)
  for index = 1, #entries, 2 do
    local permits, expiry = string.match(entries[index + 1], '^(%d+) %d+ (%d+)$')
    if permits and tonumber(expiry) <= now then
      redis.call('HDEL', lockKey, entries[index])
    elseif permits then
      lock.used = lock.used + permits
      lock.soonest = math.min(lock.soonest, tonumber(expiry))
    end
  end
  if lock.used == 0 then
    redis.call('DEL', lockKey)
    return nil
  end
  -- Where nobody was dropped it only spares the next one this look, and may fail for want of memory.
  redis.pcall('HSET', lockKey, 'used', lock.used, 'soonest', string.format('%.0f', lock.soonest))
  return lock
end

-- The key lives at least this much longer. Writes in any case, and before all else: without memory to spare, Redis lets a
-- script begin with this only.
local function keepAlive(lockKey, leaseMs)
  local ttl = math.max(tonumber(leaseMs), redis.call('PTTL', lockKey))
  redis.call('PEXPIRE', lockKey, string.format('%.0f', ttl))
end

-- One more member of a lock that was read, or nil and free. Gives the lock as it is then.
local function addMember(lockKey, lock, owner, request, token, leaseMs)
  local expiry = now + leaseMs
  local isNew = not lock or lock.used == 0
  local isDecided = not isNew and request.resized and not lock.resized
  lock = lock or { mode = request.mode, used = 0, total = request.total, resized = request.resized }
  if request.resized and not lock.resized then lock.total, lock.resized = request.total, true end
  lock.used = lock.used + request.count
  lock.soonest = isNew and expiry or math.min(lock.soonest, expiry)
  local soonest = string.format('%.0f', lock.soonest)
  local entry = request.count .. ' ' .. token .. ' ' .. string.format('%.0f', expiry)
  -- Also for a key that is not there: where an ACL forbids it, it fails here, and the lock never stands without expiry.
  if isNew then redis.call('PEXPIRE', lockKey, leaseMs) else keepAlive(lockKey, leaseMs) end
  if not lock.total then
    redis.call('HSET', lockKey, 'mode', lock.mode, 'used', lock.used, 'soonest', soonest, owner, entry)
  elseif isNew or isDecided then
    redis.call('HSET', lockKey, 'mode', lock.mode, 'used', lock.used, 'soonest', soonest, owner, entry,
      'total', lock.total, 'resized', lock.resized and 1 or 0)
  else
    redis.call('HSET', lockKey, 'used', lock.used, 'soonest', soonest, owner, entry)
  end
  if isNew then redis.call('PEXPIRE', lockKey, leaseMs) end
  return lock
end

-- A member leaves. Gives 1 if its lease still ran, and the lock as it is then: with nobody left the key is gone, but how
-- many permits there were still counts for whoever is next in this step.
local function removeMember(lockKey, owner, fields)
  local lock = readMembers(lockKey, fields)
  local permits = lock and string.match(redis.call('HGET', lockKey, owner) or '', '^(%d+) %d+ %d+$')
  if not permits then return 0, lock end
  lock.used = lock.used - permits
  if lock.used > 0 then
    redis.call('HDEL', lockKey, owner)
    redis.call('HSET', lockKey, 'used', lock.used)
    return 1, lock
  end
  redis.call('DEL', lockKey)
  return 1, lock.total and lock or nil
end
`;

/** `readLock(lockKey)`: what stands, whatever it is. Needs HOLDER and MEMBERS. */
export const ANY_LOCK = `
-- What stands: nil where the lock is free; owner, token and mode of one holder; or see readMembers.
local function readLock(lockKey)
  local owner, token, mode, fields = readHolder(lockKey)
  if not owner then return nil end
  if owner ~= '' then return { owner = owner, token = token, mode = mode } end
  return readMembers(lockKey, fields)
end
`;

/** `findMember(lockKey, owner)`. Needs CLOCK. */
export const MEMBER = `
-- Permits, fencing token and expiry of a member whose lease runs.
local function findMember(lockKey, owner)
  local entry = redis.call('HGET', lockKey, owner)
  if not entry then return nil end
  local permits, token, expiry = string.match(entry, '^(%d+) (%d+) (%d+)$')
  if not permits or tonumber(expiry) <= now then return nil end
  return permits, token, tonumber(expiry)
end
`;

/** `renewMember(lockKey, owner, leaseMs, exactly)`. Needs MEMBERS and MEMBER. */
export const RENEWAL = `
-- The member's lease starts anew, and is not made shorter unless it is said to. Gives its token, or nil.
local function renewMember(lockKey, owner, leaseMs, exactly)
  local permits, token, expiry = findMember(lockKey, owner)
  if not permits then return nil end
  local renewed = now + leaseMs
  keepAlive(lockKey, leaseMs)
  if renewed < expiry and not exactly then return token end
  redis.call('HSET', lockKey, owner, permits .. ' ' .. token .. ' ' .. string.format('%.0f', renewed))
  if renewed < expiry and renewed < tonumber(redis.call('HGET', lockKey, 'soonest')) then
    redis.call('HSET', lockKey, 'soonest', string.format('%.0f', renewed))
  end
  return token
end
`;

/** `resize(lockKey, lock, total)`, of a semaphore that was read. */
export const RESIZING = `
-- So many permits there are, for everybody.
local function resize(lockKey, lock, total)
  lock.total, lock.resized = total, true
  redis.call('HSET', lockKey, 'total', total, 'resized', 1)
end
`;
