-- A lock with several holders: readers, or holders of the permits of a semaphore. One hash:
--
-- mode      read | semaphore
-- used      permits in use; of readers, how many there are
-- soonest   no member's lease ends before this, in Redis's time: until then no script has to look for expired members
-- total     semaphores: number of permits
-- resized   semaphores: 1 after a resize; 0 while every caller states the same total
-- sweep     "cursor expiry", while the expired members are not all known. Each script looks at a bounded number of
--           members, from this cursor of HSCAN on. No lease of those before it ends before this expiry. Until every
--           member was seen, an expired member that was not seen counts as in use. The lock is free when nothing is
--           in use, and not because no member was seen: after a failover the cursor is from another server
-- <owner>   "permits token expiry about" of a member; see holder.lua. Each lease ends by itself; the key, with the last
--           of them
--
-- An owner id contains a slash, so it is none of the other fields.

-- @include clock

-- A lock that is shared, without the members whose lease is over; nil if that were all of them. Give it the fields that
-- readHolder gave, where there are any. Of very many members some may still be there whose lease is over: isPartial.
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
  -- Not a cursor of Redis: another program's.
  if not from or #from > 15 then from, seen = '0', '9000000000000000' end
  local page = redis.call('HSCAN', lockKey, from, 'COUNT', 100)
  local cursor, entries, gone, used, freed = page[1], page[2], {}, 0, 0
  seen = tonumber(seen)
  for index = 1, #entries, 2 do
    local permits, expiry = string.match(entries[index + 1], '^(%d+) %d+ (%d+)')
    -- No time, so another program's: as findMember sees it.
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
  -- Nearly always all of them are seen at once, and counted anew.
  lock.used = from == '0' and cursor == '0' and used or lock.used - freed
  local written
  if cursor ~= '0' then
    lock.sweep, lock.seen = cursor, seen
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'sweep', cursor .. string.format(' %.0f', seen))
  elseif seen == 9000000000000000 and lock.used <= 0 then
    redis.call('DEL', lockKey)
    return nil
  elseif seen == 9000000000000000 then
    -- Some were passed over: another server has gone on with a cursor that meant nothing to it. Once more from the beginning.
    lock.sweep, lock.seen = cursor, seen
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'sweep', '0 9000000000000000')
  else
    lock.soonest = seen
    if sweep then redis.call('HDEL', lockKey, 'sweep') end
    written = redis.pcall('HSET', lockKey, 'used', lock.used, 'soonest', string.format('%.0f', seen))
  end
  -- Where nobody was dropped it may fail for want of memory: then this look was in vain, and the next one is as well.
  lock.isPartial = cursor ~= '0' and type(written) == 'number'
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
  if lock.sweep then
    -- Its own that is over may not have been seen yet; and what it gets now, not any more.
    lock.used = lock.used - (string.match(redis.call('HGET', lockKey, owner) or '', '^(%d+) ') or 0)
    lock.seen = math.min(lock.seen, expiry)
  end
  lock.used = lock.used + request.count
  lock.soonest = isNew and expiry or math.min(lock.soonest, expiry)
  local soonest = string.format('%.0f', lock.soonest)
  local entry = request.count .. ' ' .. token .. ' ' .. string.format('%.0f', expiry) .. ' ' .. request.about
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
  if lock.sweep then redis.call('HSET', lockKey, 'sweep', lock.sweep .. string.format(' %.0f', lock.seen)) end
  return lock
end

-- A member leaves. Gives 1 if its lease still ran, and the lock as it is then: with nobody left the key is gone, but how
-- many permits there were still counts for whoever is next in this step.
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
