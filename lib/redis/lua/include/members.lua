-- A lock with several holders: readers, or holders of the permits of a semaphore. One hash:
--
-- mode      read | semaphore
-- used      permits in use, or the number of readers
-- soonest   no member's lease ends before this, in Redis's time: until then no script has to look for expired members
-- total     semaphores: number of permits
-- resized   semaphores: 1 after a resize; 0 while every caller passes the same total
-- sweep     "cursor expiry", until all expired members are known. Each script visits a bounded number of members, from
--           this cursor of HSCAN on. No lease before the cursor ends before this expiry. An expired member that was
--           not visited yet counts as in use. The lock is free when nothing is in use, and not because no member was
--           seen: after a failover the cursor is from another server
-- <owner>   "permits token expiry about" of a member; see holder.lua. Each lease expires separately; the key expires
--           with the last one
--
-- An owner id contains a slash, so it cannot be one of the other fields.

-- @include clock

-- A shared lock without its expired members; nil if all have expired. Pass the result of readHolder, if there is one.
-- With very many members, some expired ones may still be there: isPartial.
local function readMembers(lockKey, fields)
  fields = fields or redis.call('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized')
  if not fields[1] then return nil end
  local lock = {
    mode = fields[1], used = tonumber(fields[2]), soonest = tonumber(fields[3]),
    total = tonumber(fields[4]), resized = fields[5] == '1',
  }
  if lock.soonest > now then return lock end
  local sweep = redis.call('HGET', lockKey, 'sweep')
  local from, seen = string.match(sweep or '0 9000000000000000', '^(%d+) (%d+)$')
  -- Not a cursor of Redis: written by another program.
  if not from or #from > 15 then from, seen = '0', '9000000000000000' end
  local page = redis.call('HSCAN', lockKey, from, 'COUNT', 100)
  local cursor, entries, gone, used, freed = page[1], page[2], {}, 0, 0
  seen = tonumber(seen)
  for index = 1, #entries, 2 do
    local permits, expiry = string.match(entries[index + 1], '^(%d+) %d+ (%d+)')
    -- Not a time, so written by another program: like findMember.
    if permits and #expiry > 15 then permits = nil end
    if permits and tonumber(expiry) <= now then
      gone[#gone + 1] = entries[index]
      freed = freed + permits
    elseif permits then
      used = used + permits
      seen = math.min(seen, tonumber(expiry))
    end
  end
  if #gone > 0 then redis.call('HDEL', lockKey, unpack(gone)) end
  -- Usually all members are visited at once, and counted again.
  lock.used = from == '0' and cursor == '0' and used or lock.used - freed
  local written
  if cursor ~= '0' then
    lock.sweep, lock.seen = cursor, seen
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'sweep', cursor .. string.format(' %.0f', seen))
  elseif seen == 9000000000000000 and lock.used <= 0 then
    redis.call('DEL', lockKey)
    return nil
  elseif seen == 9000000000000000 then
    -- Some were skipped: another server has continued from a foreign cursor. Starts again from the beginning.
    lock.sweep, lock.seen = cursor, seen
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'sweep', '0 9000000000000000')
  else
    lock.soonest = seen
    if sweep then redis.call('HDEL', lockKey, 'sweep') end
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'soonest', string.format('%.0f', seen))
  end
  -- If no member was dropped, it may fail for lack of memory: then this scan has no effect, nor has the next one.
  lock.isPartial = cursor ~= '0' and type(written) == 'number'
  return lock
end

-- Extends the key by at least this time. Always writes, and first: when out of memory, Redis only lets a script begin
-- with this.
local function keepAlive(lockKey, leaseMs)
  local ttl = math.max(tonumber(leaseMs), redis.call('PTTL', lockKey))
  redis.call('PEXPIRE', lockKey, string.format('%.0f', ttl))
end

-- Adds a member to a lock that was read, or nil and free. Returns the resulting lock.
local function addMember(lockKey, lock, owner, request, token, leaseMs)
  local expiry = now + leaseMs
  local isNew = not lock or lock.used == 0
  local isDecided = not isNew and request.resized and not lock.resized
  lock = lock or { mode = request.mode, used = 0, total = request.total, resized = request.resized }
  if request.resized and not lock.resized then lock.total, lock.resized = request.total, true end
  if lock.sweep then
    -- Its own expired entry may not have been visited yet, and its new one is not visited any more.
    lock.used = lock.used - (string.match(redis.call('HGET', lockKey, owner) or '', '^(%d+) ') or 0)
    lock.seen = math.min(lock.seen, expiry)
  end
  lock.used = lock.used + request.count
  lock.soonest = isNew and expiry or math.min(lock.soonest, expiry)
  local soonest = string.format('%.0f', lock.soonest)
  local entry = request.count .. ' ' .. token .. ' ' .. string.format('%.0f', expiry) .. ' ' .. request.about
  -- Even without a key: if an ACL forbids it, it fails here, so the lock never exists without expiry.
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
  if lock.sweep then redis.call('HSET', lockKey, 'sweep', lock.sweep .. string.format(' %.0f', lock.seen)) end
  return lock
end

-- Removes a member. Returns 1 if its lease had not expired, and the resulting lock: without members the key is gone, but
-- the number of permits still applies to the next waiter in this step.
local function removeMember(lockKey, owner, fields)
  local lock = readMembers(lockKey, fields)
  local permits, expiry = string.match(lock and redis.call('HGET', lockKey, owner) or '', '^(%d+) %d+ (%d+)')
  if not permits then return 0, lock end
  local wasHeld = tonumber(expiry) > now and 1 or 0
  lock.used = lock.used - permits
  if lock.used > 0 then
    redis.call('HDEL', lockKey, owner)
    redis.call('HSET', lockKey, 'used', lock.used)
    return wasHeld, lock
  end
  redis.call('DEL', lockKey)
  lock.sweep, lock.isPartial = nil, nil
  return wasHeld, lock.total and lock or nil
end
