// Written by `npm run lua` from the .lua files in lib/. Change them.

// redis/lua/include/clock.lua
const clock = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000
`;

// redis/lua/acquire.lua
const acquireScript = `
-- No holder and no waiter: the usual case. Written out, because each function costs as much as a command.
local isFree = not ARGV[7] and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0
local askedMode, labelText = ARGV[4] or '', ARGV[6]
if askedMode == '' then askedMode = 'exclusive' end
if labelText == '' then labelText = nil end
if isFree and askedMode == 'exclusive' then

  -- Usually one command: the floor has to be set only once per millisecond. '2' is a string, because Redis needs 0.25 µs to
  -- format a Lua number.
  local half = redis.pcall('INCRBY', KEYS[3], '2')
  if type(half) == 'table' then
    -- A text of another program: LLEN raises Redis's own WRONGTYPE.
    if string.find(half.err, 'integer') or string.find(half.err, 'overflow') then redis.call('LLEN', KEYS[3]) end
    half = redis.call('INCRBY', KEYS[3], '2')
  end
  -- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
  if half > 281474976710655 then redis.call('LLEN', KEYS[3]) end
  local floor = (now - 1577836800000) * 100
  if half < floor then
    -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
    half = (half == 2 and floor + 100 + 2 * math.floor(clock[2] % 1000 / 20) or floor) + 1
    redis.call('SET', KEYS[3], string.format('%.0f', half))
  elseif half % 2 == 0 then
    half = half + 1
    redis.call('SET', KEYS[3], string.format('%.0f', half))
  end
  local token = (half - 1) * 32
  local text = ARGV[1] .. ' ' .. string.format('%.0f', token) .. ' ' .. ARGV[2]
  redis.call('SET', KEYS[1], labelText and text .. ' ' .. labelText or text, 'PX', ARGV[2])
  return token
end
`;

// redis/lua/include/fence.lua
const fence = `
local function mintToken(fenceKey)

  -- Usually one command: the floor has to be set only once per millisecond. '2' is a string, because Redis needs 0.25 µs to
  -- format a Lua number.
  local half = redis.pcall('INCRBY', fenceKey, '2')
  if type(half) == 'table' then
    -- A text of another program: LLEN raises Redis's own WRONGTYPE.
    if string.find(half.err, 'integer') or string.find(half.err, 'overflow') then redis.call('LLEN', fenceKey) end
    half = redis.call('INCRBY', fenceKey, '2')
  end
  -- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
  if half > 281474976710655 then redis.call('LLEN', fenceKey) end
  local floor = (now - 1577836800000) * 100
  if half < floor then
    -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
    half = (half == 2 and floor + 100 + 2 * math.floor(clock[2] % 1000 / 20) or floor) + 1
    redis.call('SET', fenceKey, string.format('%.0f', half))
  elseif half % 2 == 0 then
    half = half + 1
    redis.call('SET', fenceKey, string.format('%.0f', half))
  end
  local token = (half - 1) * 32
  return token
end
`;

// redis/lua/include/take.lua
const take = `
local function takeLock(lockKey, fenceKey, owner, mode, leaseMs, about)
  local token = mintToken(fenceKey)
  local text = string.format('%.0f', token)
  if mode == 'exclusive' then
    redis.call('SET', lockKey, owner .. ' ' .. text .. ' ' .. about, 'PX', leaseMs)
  else
    -- Changes nothing yet, but if an ACL forbids it, it fails here and not after HSET: a lock never exists without expiry.
    redis.call('PEXPIRE', lockKey, leaseMs)
    redis.call('HSET', lockKey, 'mode', mode, 'owner', owner, 'token', text, 'about', about)
    redis.call('PEXPIRE', lockKey, leaseMs)
  end
  return token
end
`;

// redis/lua/include/holder.lua
const holder = `
local function readHolder(lockKey, text)
  text = text or redis.pcall('GET', lockKey)
  if not text then return nil end
  if type(text) == 'string' then
    local owner, token, lease, label = string.match(text, '^(%S+) (%d+) (%d+)(.*)$')
    if label == '' then return owner, token, 'exclusive', lease end
    if label and string.sub(label, 1, 2) == ' {' then return owner, token, 'exclusive', lease .. label end
    return false
  end
  -- For example NOPERM, if the user may not read.
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return redis.call('GET', lockKey) end
  local fields = redis.pcall('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized', 'owner', 'token', 'about', 'depth')
  if fields.err and string.find(fields.err, 'WRONGTYPE', 1, true) then return false end
  if fields.err then return redis.call('HMGET', lockKey, 'mode') end
  -- Must be a number: other programs can write here.
  if fields[6] and fields[1] ~= 'read' and fields[1] ~= 'semaphore' then
    local token, about = fields[7] or '', string.match(fields[8] or '', '^%d.*$')
    return fields[6], string.find(token, '^%d+$') and token or false, fields[1] or 'reentrant', about or '', fields[9]
  end
  local isShared = fields[1] == 'read' or (fields[1] == 'semaphore' and string.find(fields[4] or '', '^%d+$'))
  if isShared and string.find(fields[2] or '', '^-?%d+$') and string.find(fields[3] or '', '^%d+$') and #fields[3] <= 16 then
    return '', nil, fields[1], fields
  end
  return false
end
`;

// redis/lua/include/members.lua
const members = `
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
`;

// redis/lua/include/admission.lua
const admission = `
-- about: stored with a grant; see holder.lua. It is the lease, and the label if there is one. For a place in the queue,
-- it is read as a whole.
local function parseRequest(text, about, label)
  if label then about = about .. ' ' .. label end
  if string.sub(text, 1, 10) ~= 'semaphore:' then return { mode = text, count = 1, about = about } end
  local count, total, resized = string.match(text, ':(%d+):(%d+):(%d)$')
  return {
    mode = 'semaphore', count = tonumber(count), total = tonumber(total), resized = resized == '1', about = about,
  }
end

-- The number of permits: a total that was set by a resize applies to all.
local function totalFor(lock, request)
  if request.resized and not lock.resized then return request.total end
  return lock.total
end

-- True if the request can never be granted: it uses the resource for something else.
local function isMismatch(lock, request)
  if (lock.mode == 'semaphore') ~= (request.mode == 'semaphore') then return true end
  if lock.mode ~= 'semaphore' then return false end
  if lock.total ~= request.total and not lock.resized and not request.resized then return true end
  return request.count > totalFor(lock, request)
end

-- True if it can be granted now, if it is its turn.
local function admits(lock, request)
  if not lock then return true end
  if lock.mode == 'read' then return request.mode == 'read' end
  return lock.mode == 'semaphore' and lock.used + request.count <= totalFor(lock, request)
end
`;

// redis/lua/include/queue.lua
const queue = `
-- The format of a place. isStrange: the sorted set has no place, so it belongs to another program. isWatched: there are
-- watchers, but no waiters. isPassedOn: the script itself passes what it frees to its next owner.
local PLACE, budget, isCut, isStrange = '^ (%d+) (%S+) (%d+) (%d+) (%d.*)$', 100, false, false
local isWatched, isPassedOn, isNotified = false, false, false

-- The number of the owner's place, if it has one. Anything but a sorted set belongs to another program: WRONGTYPE.
local function findPlace(queueKey, owner)
  return redis.call('ZSCORE', queueKey, owner)
end

local function leaveQueue(queueKey, number, owner, data)
  data = data or redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
  redis.call('ZREM', queueKey, owner, data, '#' .. number)
end

-- The first waiter whose place has not expired: its owner, number, mode, the time left of its place, its stamp, its data
-- and about. Drops the places before it. If there are too many of these for one script: an empty string.
local function firstWaiter(queueKey)
  local head = redis.call('ZRANGE', queueKey, '0', '1')
  while head[1] do
    local number, mode, expiry, sentAt, about = string.match(head[1], PLACE)
    if not number then
      if string.sub(head[1], 1, 1) == '!' then
        isWatched = true
        return nil
      end
    elseif tonumber(expiry) > now then
      return head[2] or ' ', number, mode, expiry - now, sentAt, head[1], about
    end
    if budget <= 0 then
      isCut = true
      return ''
    end
    local isDead, places, gone = number and true, redis.call('ZRANGE', queueKey, 0, 2 * budget - 1), {}
    local index = 1
    -- Drops what another program has written before a place or a watcher, and expiries without a place. Without anything
    -- of ours, the key is not ours.
    while places[index] do
      number, mode, expiry = string.match(places[index], PLACE)
      if isDead and (not number or tonumber(expiry) > now) then break end
      gone[#gone + 1] = places[index]
      if isDead then
        gone[#gone + 1] = '#' .. number
        -- Another program may have removed the owner.
        if string.sub(places[index + 1] or ' ', 1, 1) ~= ' ' then
          index = index + 1
          gone[#gone + 1] = places[index]
        end
      elseif number or string.find(places[index], '^!.+/') then
        gone[#gone], isStrange = nil, false
        break
      elseif not string.find(places[index], '^#%d+$') then
        isStrange = true
      end
      index, budget = index + 1, budget - 1
    end
    if isStrange then return nil end
    redis.call('ZREM', queueKey, unpack(gone))
    head = redis.call('ZRANGE', queueKey, '0', '1')
  end
end
`;

// redis/lua/include/granting.lua
const granting = `
local function take(lockKey, fenceKey, lock, owner, request, leaseMs)
  if request.mode ~= 'read' and request.mode ~= 'semaphore' then
    return takeLock(lockKey, fenceKey, owner, request.mode, leaseMs, request.about)
  end
  local token = mintToken(fenceKey)
  return token, addMember(lockKey, lock, owner, request, string.format('%.0f', token), leaseMs)
end

-- Frees what an owner holds, alone or as a member. Returns 1 if it still held it, and the resulting lock. The fields
-- are the result of readHolder, if there is one.
local function giveBack(lockKey, owner, isShared, fields)
  if isShared then return removeMember(lockKey, owner, fields) end
  return redis.call('DEL', lockKey), nil
end

local function grantWaiting(lockKey, queueKey, fenceKey, lock, own)
  if not fenceKey then
    local ends, behind = 0, 0
    pcall(firstWaiter, queueKey)
    -- Another program may have overwritten the queue, or the ACL forbids its key. That does not affect the lock.
    local places, heard, unheard = redis.pcall('ZRANGE', queueKey, 0, 15), 0, 0
    for index = 1, #places do
      local position, _, lasts, sentAt = string.match(places[index], PLACE)
      local waiter = places[index + 1]
      if position and tonumber(lasts) > now and waiter and string.find(waiter, '^[^ ].*/') then
        if tonumber(position) <= tonumber(behind) then
          heard = heard + 1
        else
          local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', ends + 1000 * heard + 250 * unheard)
          local said = 'kept ' .. left .. ' ' .. sentAt
          local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
            redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
          if receivers == 0 then unheard = unheard + 1 else heard = heard + 1 end
        end
        if heard >= 4 then break end
      end
    end
    return lock
  end
  local prefix, inCluster = string.gsub(string.sub(fenceKey, 1, -6), '{[^{}]*}:$', '')
  local owner
  while true do
    local number, mode, leaseMs, sentAt, data, about
    owner, number, mode, leaseMs, sentAt, data, about = firstWaiter(queueKey)
    if not number or owner == own then

      if isWatched and not isPassedOn and (not lock or lock.used == 0) then
        local watchers, told = redis.call('ZRANGE', queueKey, 0, 99, 'WITHSCORES'), {}
        for index = 1, #watchers, 2 do
          local score, watcher = tonumber(watchers[index + 1]), string.sub(watchers[index], 2)
          local client = string.match(watcher, '^(.*)/')
          if string.sub(watchers[index], 1, 1) == '!' then told[#told + 1] = watchers[index] else isCut = true end
          if client and score > now * 1000 then
            local mark = string.format('%.0f', score % 1000)
            redis.pcall('PUBLISH', prefix .. 'inbox:' .. client,
              'free ' .. redis.sha1hex(mark .. ' ' .. watcher) .. ' ' .. mark .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
          end
        end
        redis.call('ZREM', queueKey, unpack(told))
        if #told == 100 then isCut = true end
        isWatched = false
      end
      break
    end
    local request, client = parseRequest(mode, about), string.match(owner, '^([^ ].*)/')
    -- Drops what another program has written, and no waiter can have sent.
    local isPlace = client and leaseMs < 1000000000000000 and (mode == 'exclusive' or mode == 'read' or mode == 'write'
      or mode == 'reentrant' or ((request.count or 0) > 0 and request.total and request.count <= request.total))
    local isMisfit = isPlace and lock and isMismatch(lock, request)
    local isBlocked = isPlace and not isMisfit and not admits(lock, request)
    if isBlocked or budget <= 0 then
      -- Expired members that were not visited yet may have what it needs.
      isCut = isCut or not isBlocked or lock.isPartial
      break
    end
    leaveQueue(queueKey, number, isPlace and owner or '', data)
    budget = budget - 3
    local isDeaf, channel = not isPlace, isPlace and prefix .. 'inbox:' .. client
    if isPlace and inCluster == 0 then
      local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel)
      if listeners.err or listeners[2] == 0 then
        -- PUBLISH also counts pattern subscribers; and without permission nothing is certain.
        local receivers = redis.pcall('PUBLISH', channel, '')
        isDeaf = type(receivers) == 'number' and (receivers == 0 or not listeners.err)
      end
    end
    -- A waiter that uses the resource for something else finds out with its next heartbeat.
    if not isMisfit and not isDeaf then
      budget = budget - 3
      local token, shared = take(lockKey, fenceKey, lock, owner, request, string.format('%.0f', leaseMs))
      local tokenText = string.format('%.0f', token)
      local terms = tokenText .. ' ' .. sentAt
      redis.pcall('PUBLISH', channel,
        redis.sha1hex(terms .. ' ' .. owner) .. ' ' .. terms .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
      if not shared then return { owner = owner, token = token, mode = mode, about = about } end
      lock = shared
    end
  end
  if isCut and not isNotified then
    isNotified = true
    -- The waiters that asked last: their places last longest.
    for _, mark in ipairs(redis.call('ZRANGE', queueKey, '(100000000000000', '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, 3)) do
      local number, left = string.match(mark, '^#(%d+)$'), 0
      local members = number and redis.call('ZRANGE', queueKey, number, number, 'BYSCORE') or {}
      local waiter, _, _, _, sentAt = members[2], string.match(members[1] or '', PLACE)
      if sentAt and waiter and waiter ~= own and string.find(waiter, '/', 1, true) then

        local said = 'kept ' .. left .. ' ' .. sentAt
        local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
          redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
        if type(receivers) == 'number' and receivers > 0 then break end
      end
    end
  end
  return lock, owner
end
`;

// redis/lua/include/lease.lua
const lease = `
-- The time left of the holder's lease. Without expiry (after PERSIST), a lock never ends: ask again in a second.
local function holderTtl(lockKey)
  local ttl = redis.call('PTTL', lockKey)
  return ttl < 0 and 1000 or ttl
end
`;

// redis/lua/include/holder-renewal.lua
const holderRenewal = `
-- Rewrites it; the expiry stays.
local function writeHolder(lockKey, holder)
  if holder.mode == 'exclusive' then
    redis.call('SET', lockKey, holder.owner .. ' ' .. holder.token .. ' ' .. holder.about, 'KEEPTTL')
  else
    redis.call('HSET', lockKey, 'owner', holder.owner, 'token', holder.token or '', 'about', holder.about, 'depth', holder.depth or 1)
  end
end

-- Restarts the lease, and only shortens it if exactly is set: a late command must not cut a lease that was extended
-- since. Always sets the expiry, and first: a sender that waits for replicas also waits for all earlier writes, and when
-- out of memory, Redis only lets a script begin with this. Returns the time that was left before.
local function renewHolder(lockKey, holder, leaseMs, exactly)
  local ttl = redis.call('PTTL', lockKey)
  local lasts = string.format('%.0f', exactly and leaseMs or math.max(leaseMs, ttl))
  redis.call('PEXPIRE', lockKey, lasts)
  local lease, label = string.match(holder.about, '^(%d*)(.*)$')
  if lease ~= lasts then
    holder.about = lasts .. label
    writeHolder(lockKey, holder)
  end
  return ttl
end
`;

// redis/lua/include/any-lock.lua
const anyLock = `
-- Returns nil if the lock is free; owner, token, mode, about and depth of one holder; or see readMembers.
local function readLock(lockKey)
  local owner, token, mode, about, depth = readHolder(lockKey)
  if owner == nil then return nil end
  if not owner then
  redis.call('LLEN', lockKey)
  return redis.call('GET', lockKey)
  end
  if owner ~= '' then return { owner = owner, token = token, mode = mode, about = about, depth = depth } end
  return readMembers(lockKey, about)
end
`;

// redis/lua/include/member.lua
const member = `
-- Only for a member whose lease has not expired. about: see holder.lua.
local function findMember(lockKey, owner)
  local entry = redis.call('HGET', lockKey, owner)
  if not entry then return nil end
  local permits, token, expiry, about = string.match(entry, '^(%d+) (%d+) (%d+) (%d.*)$')
  if not permits or tonumber(expiry) <= now or #expiry > 15 then return nil end
  return permits, token, tonumber(expiry), about
end
`;

// redis/lua/include/renewal.lua
const renewal = `
-- Restarts the member's lease, and only shortens it if exactly is set. Returns its token, or nil.
local function renewMember(lockKey, owner, leaseMs, exactly)
  local permits, token, expiry, about = findMember(lockKey, owner)
  if not permits then return nil end
  local renewed = now + leaseMs
  keepAlive(lockKey, leaseMs)
  local lasts = string.format('%.0f', exactly and renewed or math.max(renewed, expiry))
  about = string.format('%.0f', lasts - now) .. string.match(about, '^%d+(.*)$')
  redis.call('HSET', lockKey, owner, permits .. ' ' .. token .. ' ' .. lasts .. ' ' .. about)
  if exactly and renewed < expiry then
    local bounds = redis.call('HMGET', lockKey, 'soonest', 'sweep')
    if renewed < tonumber(bounds[1]) then redis.call('HSET', lockKey, 'soonest', lasts) end
    -- It may have been visited already.
    local cursor, seen = string.match(bounds[2] or '', '^(%d+) (%d+)$')
    if cursor and renewed < tonumber(seen) then redis.call('HSET', lockKey, 'sweep', cursor .. ' ' .. lasts) end
  end
  return token
end
`;

// redis/lua/include/resizing.lua
const resizing = `
-- This number of permits applies to all callers.
local function resize(lockKey, lock, total)
  lock.total, lock.resized = total, true
  redis.call('HSET', lockKey, 'total', total, 'resized', 1)
end
`;

// redis/lua/include/joining.lua
const joining = `
-- Joins the end, or renews its place. Returns its place, from 1, and the milliseconds until the first unexpired place
-- expires; or false if there are as many waiters as the caller accepts, not counting expired places.
local function joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, maxWaiters, about)
  local expiry, ttl, before, soonest = now + leaseMs, nil, nil, nil
  local place = ' ' .. mode .. ' ' .. expiry .. ' ' .. sentAt .. ' ' .. about
  if number then
    ttl = redis.call('PTTL', queueKey)
    local data = redis.call('ZRANGE', queueKey, number, number, 'BYSCORE')[1]
    local rewritten = ' ' .. number .. place
    -- In this order, the place is complete even if Redis rejects a command, for lack of memory or a permission.
    redis.call('ZADD', queueKey, expiry, '#' .. number, number, rewritten)
    -- Another program may have removed it. Within a millisecond, both are the same.
    if data ~= owner and data ~= rewritten then redis.call('ZREM', queueKey, data) end
    before = before or redis.call('ZCOUNT', queueKey, '-inf', '(' .. number) / 2
  else
    local length, last, edge = redis.call('ZCARD', queueKey) / 3, 0, nil
    soonest = expiry
    if length > 0 then
      -- The border between places and expiries: the last number, and the soonest expiry.
      edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
      if length % 1 > 0 or string.sub(edge[1], 1, 1) == '#' or string.sub(edge[3], 1, 1) ~= '#' then
        -- Watchers come after them, and do not count.
        length = redis.call('ZCOUNT', queueKey, '-inf', '(100000000000000') / 3
        edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
        if length % 1 > 0 or (length > 0 and string.sub(edge[3], 1, 1) ~= '#') then
          -- Another program has written between the places. Drops that.
          local members, kept, gone, open = redis.call('ZRANGE', queueKey, 0, 599), {}, {}, nil
          for _, member in ipairs(members) do
            if string.find(member, PLACE) then
              open = member
            elseif open and string.find(member, '^[^ #!].*/') then
              kept[open], kept[member], kept['#' .. string.match(open, PLACE)] = true, true, true
              open = nil
            end
          end
          for _, member in ipairs(members) do
            if not kept[member] and string.sub(member, 1, 1) ~= '!' then gone[#gone + 1] = member end
          end
          if next(kept) and #gone > 0 then redis.call('ZREM', queueKey, unpack(gone)) end
          length = redis.call('ZCOUNT', queueKey, '-inf', '(100000000000000') / 3
          edge = redis.call('ZRANGE', queueKey, math.floor(2 * length - 1), math.floor(2 * length), 'WITHSCORES')
          -- Not a queue, so this raises Redis's own error.
          if length % 1 > 0 or (length > 0 and string.sub(edge[3], 1, 1) ~= '#') then return redis.call('LLEN', queueKey) end
        end
      end
    end
    if length > 0 then
      if length >= maxWaiters and redis.call('ZCOUNT', queueKey, '(' .. now, '(100000000000000') >= maxWaiters then
        return false
      end
      last, soonest = edge[2], math.min(tonumber(edge[4]), expiry)
      if soonest <= now then
        -- Drops some expired places, wherever they are: more than join, so that they do not pile up.
        local due, gone = redis.call('ZRANGE', queueKey, 2 * length, 2 * length + 15, 'WITHSCORES'), {}
        for index = 1, #due, 2 do
          if tonumber(due[index + 1]) > now then break end
          local dead = string.sub(due[index], 2)
          local members = redis.call('ZRANGE', queueKey, dead, dead, 'BYSCORE')
          gone[#gone + 1], gone[#gone + 2], gone[#gone + 3] = due[index], members[1], members[2]
        end
        redis.call('ZREM', queueKey, unpack(gone))
        length = length - #gone / 3
      end
    end
    -- Last, because dead waiters may have taken the key with them.
    ttl = redis.call('PTTL', queueKey)
    -- Changes nothing without a key, but fails here if an ACL forbids it: a queue never exists without expiry.
    if ttl < 0 then redis.call('PEXPIRE', queueKey, leaseMs) end
    number, before = last + 1, length
    redis.call('ZADD', queueKey, number, owner, number, ' ' .. number .. place, expiry, '#' .. number)
  end
  if ttl < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  if not soonest or soonest <= now then
    soonest = redis.call('ZRANGE', queueKey, '(' .. now, '(100000000000000', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    soonest = tonumber(soonest[2] or expiry)
  end
  return before + 1, soonest - now
end
`;

// redis/lua/include/acquiring.lua
const acquiring = `local function acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, label, newestKey, newest,
  isKnown, known)
  -- Read before anything is written: a problem with a key must not leave a lock behind.
  local number = findPlace(queueKey, owner)
  local lock, first, held = known, nil, nil
  if not isKnown then lock = readLock(lockKey) end
  if lock and lock.used == 0 then lock = nil end
  if lock and lock.used then
    held = renewMember(lockKey, owner, leaseMs)
  elseif lock and lock.owner == owner then
    renewHolder(lockKey, lock, leaseMs)
    held = lock.token
  end
  if held then
    if number then leaveQueue(queueKey, number, owner) end
    return tonumber(held)
  end
  local began, keepMs
  if newest and not number then
    -- It joins now, unless a newer call has joined already, which it would cancel. A time in the future is from before the
    -- clock of Redis was set back.
    local newerBegan, newer = string.match(redis.call('GET', newestKey) or '', '^(%d+) (.+)$')
    local age, keep = string.match(newest, '^(%d+) (%d+)$')
    began, keepMs = now - age, keep
    if newer and newer ~= owner and tonumber(newerBegan) > began and tonumber(newerBegan) <= now then
      return { 'full', 0, '', string.match(newer, '^[^/]*') }
    end
  end
  local request = parseRequest(mode, leaseMs, label)
  if not lock or lock.used then
    -- A holder died, or a writer that readers wait behind: the next waiters come before this one.
    lock, first = grantWaiting(lockKey, queueKey, fenceKey, lock, owner)
    -- This raises Redis's own error.
    if isStrange then redis.call('LLEN', queueKey) end
    if number then number = findPlace(queueKey, owner) end
  end
  local isMisfit = lock and isMismatch(lock, request)
  if not isMisfit and (not first or first == owner) and admits(lock, request) then
    if number then leaveQueue(queueKey, number, owner) end
    if began then redis.call('SET', newestKey, string.format('%.0f', began) .. ' ' .. owner, 'PX', keepMs) end
    return (take(lockKey, fenceKey, lock, owner, request, leaseMs))
  end
  -- More is known in a moment.
  local ttl = 1
  if lock and not isCut and not lock.isPartial then
    ttl = lock.mode == 'semaphore' and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  end
  if isMisfit then
    if number then leaveQueue(queueKey, number, owner) end
    return { 'mismatch', ttl, lock.mode, lock.total or 1 }
  end

  local seen = ''
  if lock and lock.owner then
    local client = string.match(lock.owner, '^(%S+)/')
    if client then
      -- A token that was minted here is a number, and Lua prints 14 digits of those.
      local standing = type(lock.token) == 'string' and string.sub(lock.token, 1, 20) or string.format('%.0f', lock.token or 0)
      seen = string.format('%.9s 1 %.0f\\n', lock.mode, now) .. string.sub(client, 1, 200) .. ' '
        .. (lock.depth and string.sub(lock.depth, 1, 7) or 1) .. ' ' .. standing .. string.format(' %.0f ', now + ttl)
        .. (#lock.about < 17 and lock.about or string.match(string.sub(lock.about, 1, 320), '^[^\\n]*'))
    end
  elseif lock and not isCut then
    local named = {}
    -- 8 of this many fields are members, because at most 6 are not.
    local fields = redis.pcall('HRANDFIELD', lockKey, 14, 'WITHVALUES')
    for index = 1, #fields, 2 do
      local client = string.match(fields[index], '^(%S+)/')
      if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 360), '^[^\\n]*') end
    end
    local count = #named
    -- There may be more. For readers, used is their number.
    if #fields == 28 then
      count = lock.total and redis.call('HLEN', lockKey) - (lock.sweep and 6 or 5) or lock.used or count
    end
    if named[1] then
      seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\\n' .. table.concat(named, '\\n')
    end
  end
  if sentAt == '' then return { 'busy', ttl, seen, (isCut or (lock and lock.isPartial)) and 1 or nil } end
  -- It may only keep a place, and has none.
  if not number and tonumber(maxWaiters) == 0 then return { 'full', ttl, seen } end
  local place, soonestMs = joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, tonumber(maxWaiters), request.about)
  if not place then return { 'full', ttl, seen } end
  if began then redis.call('SET', newestKey, string.format('%.0f', began) .. ' ' .. owner, 'PX', keepMs) end
  -- The TTL is the last reader's, but a reader that dies may expire earlier.
  if lock and lock.mode == 'read' then soonestMs = math.max(1, math.min(soonestMs, lock.soonest - now)) end
  if request.resized and lock and lock.used and not lock.resized then
    -- From now on its total also applies to the waiters before it.
    resize(lockKey, lock, request.total)
    grantWaiting(lockKey, queueKey, fenceKey, lock)
  end
  local told
  if string.sub(owner, -1) == '!' then
    -- A call that cancels older ones has such an owner id. Notifies the holder of an exclusive lock, and a hundred waiters
    -- before it, if their owner ids end with ~ or ~!: "seal superseded instance resource" in the inboxes of their clients;
    -- see grant-seal.ts. Takes nothing from them.
    local older = place > 1 and redis.call('ZRANGE', queueKey, 0, math.min(2 * place, 202) - 3) or {}
    older[#older + 1] = lock and lock.owner
    local said, prefix = 'superseded ' .. string.match(owner, '^[^/]*'), string.match(lockKey, '^(.*){[^{}]*}$')
    for index = 1, #older do
      local other = older[index]
      local client = string.match(other, '^([^ #!].*)/[^/]*~!?$')
      if client then
        local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. client,
          redis.sha1hex(said .. ' ' .. other) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
        -- An ACL may forbid the channel.
        if lock and other == lock.owner and type(receivers) == 'number' then told = 1 end
      end
    end
  end
  return { 'queued', ttl, seen, place, soonestMs, told }
end
`;

// redis/lua/acquire.lua
const acquireScript2 = `
if isFree then return (take(KEYS[1], KEYS[3], nil, ARGV[1], parseRequest(askedMode, ARGV[2], labelText), ARGV[2])) end
local limit = tonumber(ARGV[5] or '') or 10000
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], askedMode, ARGV[2], ARGV[3], limit, labelText, KEYS[4], ARGV[7])
`;

// redis/lua/answer-roll.lua
const answerRollScript = `
local answers, client, answer = KEYS[2], ARGV[2], ARGV[3]
if ARGV[1] == '' then
  answer = string.format('%.0f ', now) .. answer
  -- Each report checks two others, so that reports of dead instances do not pile up.
  local some = redis.pcall('HRANDFIELD', answers, 2, 'WITHVALUES')
  for index = 1, #some, 2 do
    if now - tonumber(string.match(some[index + 1], '^%d+') or 0) > tonumber(ARGV[4]) then
      redis.call('HDEL', answers, some[index])
    end
  end
elseif redis.call('HGET', KEYS[1], 'nonce') ~= ARGV[1] then
  return 0
end
redis.call('HSET', answers, client, answer)
redis.call('PEXPIRE', answers, ARGV[4])
return 1
`;

// redis/lua/call-roll.lua
const callRollScript = `
local key, nonce, scope, channel = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local standing = redis.call('HMGET', key, 'nonce', 'scope', 'at', 'asked')
local ageMs = now - (tonumber(standing[3] or '') or 0)
-- A clock that was set back must not keep one open.
if standing[1] and (standing[1] == nonce or (ageMs >= 0 and ageMs < tonumber(ARGV[4]))) then
  return { standing[1], standing[2], tonumber(standing[3]), math.max(ageMs, 0), tonumber(standing[4]) }
end

local asked = -1
if ARGV[6] == '1' then
  local counted = redis.pcall('PUBSUB', 'NUMSUB', channel)
  asked = tonumber(counted[2] or -1)
end
redis.call('HSET', key, 'nonce', nonce, 'scope', scope, 'at', string.format('%.0f', now), 'asked', asked)
redis.call('PEXPIRE', key, ARGV[5])
local told = redis.pcall('PUBLISH', channel, 'roll ' .. nonce .. ' ' .. scope)
if type(told) == 'table' then
  redis.call('DEL', key)
  return told
end
return { nonce, scope, now, 0, asked }
`;

// features/jobs/redis/lua/change-request.lua
const changeRequestScript = `
local key = KEYS[1]
local from, to, keepMs, channel, message = unpack(ARGV, 1, 5)
local standing = redis.call('GET', key) or ''
-- A command that was sent again.
if to == '' or (standing ~= from and standing ~= to) then return standing end
if standing == from then redis.call('SET', key, to, 'PX', keepMs) end
if channel == '' then return to end
local told = redis.pcall('PUBLISH', channel, message)
if type(told) == 'table' then
  redis.call('DEL', key)
  return told
end
return to
`;

// features/once/redis/lua/claim-result.lua
const claimResultScript = `
-- Another program's key of another type counts as none, and is replaced.
local kept = redis.pcall('GET', KEYS[4])
if type(kept) == 'string' and string.find(kept, '^[=-]') and redis.sha1hex(kept) ~= ARGV[3] then
  return { 'kept', kept, ARGV[3] ~= '' and redis.sha1hex(kept) or nil }
end
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], 'exclusive', ARGV[2], '', 0, ARGV[4])
`;

// features/jobs/redis/lua/include/claim-text.lua
const claimText = `
local function readClaim(claim)
  local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
  local plain, attempt = string.match(claimant or '', '^(.*)~(%d%d?%d?)$')
  return plain or claimant, state, tonumber(attempt) or (state == 'reruns' and 2 or 1)
end

local function writeClaim(claimant, attempt)
  if attempt > 1 then return claimant .. (attempt > 2 and '~' .. attempt or '') .. ' reruns' end
  return claimant == 'returned' and claimant or claimant .. ' runs'
end
`;

// features/jobs/redis/lua/include/tick-due.lua
const tickDue = `
local function judgeTick(lastKey, at, earlyMs, lateMs)
  at = tonumber(at)
  if at > now + earlyMs then return 'early', now - at end
  local last = tonumber(redis.call('GET', lastKey) or '') or 0
  if at < now - lateMs or (at <= last and last <= now + earlyMs) then return 'late', now - at end
end

-- The last tick that was claimed. If it could not have been claimed yet, the clock was set back.
local function noteTick(lastKey, at, earlyMs, keepMs)
  local last = tonumber(redis.call('GET', lastKey) or '') or 0
  if tonumber(at) > last or last > now + earlyMs then redis.call('SET', lastKey, at, 'PX', keepMs) end
end
`;

// features/jobs/redis/lua/include/job-record.lua
const jobRecord = `
local function readRecord(recordKey)
  local fields = redis.pcall('HMGET', recordKey, 'schedule', 'owed', 'span', 'pause', 'missed', 'next', 'told', 'since', 'stated', 'down', 'by', 'other')
  if fields.err then fields = {} end
  return { schedule = fields[1], owed = fields[2], span = fields[3], pause = fields[4], missed = fields[5], next = fields[6], told = fields[7], since = fields[8], stated = fields[9], down = fields[10], by = fields[11] or '-', other = fields[12] }
end

-- The TTL of a job's keys in milliseconds: until keepMs after its next tick, and never shorter than before.
local function keepFor(recordKey, next, keepMs)
  local ahead = math.max(0, (tonumber(next) or 0) - now)
  return string.format('%.0f', math.max(redis.call('PTTL', recordKey), ahead + keepMs))
end

-- Extends the record, the history and the instances.
local function keepJob(recordKey, runsKey, instancesKey, ttl)
  redis.pcall('PEXPIRE', recordKey, ttl)
  redis.pcall('PEXPIRE', runsKey, ttl)
  redis.pcall('PEXPIRE', instancesKey, ttl)
end
`;

// features/jobs/redis/lua/include/job-instances.lua
const jobInstances = `
local function noteInstance(instancesKey, owner, keepMs)
  local instance = string.match(owner, '^[^/]*')
  local seen = redis.pcall('ZSCORE', instancesKey, instance)
  if type(seen) == 'table' or (seen and tonumber(seen) > now - 60000) then return end
  redis.pcall('ZADD', instancesKey, now, instance)
  -- Each start of a process has a new name.
  local oldest = redis.pcall('ZRANGE', instancesKey, 0, 0, 'WITHSCORES')
  if oldest[1] and oldest[1] ~= instance and (tonumber(oldest[2]) < now - keepMs or redis.call('ZCARD', instancesKey) > 1000) then
    redis.call('ZREM', instancesKey, oldest[1])
  end
  redis.pcall('PEXPIRE', instancesKey, string.format('%.0f', math.max(keepMs, redis.call('PTTL', instancesKey))))
end
`;

// features/jobs/redis/lua/include/job-pause.lua
const jobPause = `
local function readPause(pausedKey)
  local at, till, by = string.match(redis.call('GET', pausedKey) or '', '^(%d+) (%d+) (.*)$')
  return tonumber(at), tonumber(till), by
end
`;

// features/jobs/redis/lua/include/job-runs.lua
const jobRuns = `
-- How many entries to search for a run that has not ended: only missed ticks can be in between.
local function recentRuns(runsKey)
  local entries = redis.pcall('LRANGE', runsKey, 0, 63)
  return entries.err and {} or entries
end

local function addRuns(runsKey, historySize, ...)
  if tonumber(historySize) < 1 then return redis.pcall('DEL', runsKey) end
  redis.pcall('LPUSH', runsKey, ...)
  redis.pcall('LTRIM', runsKey, 0, historySize - 1)
end

-- Deletes the newest run of a tick, if it is this attempt and has not ended. An earlier attempt has crashed, and stays.
local function dropOpenRun(runsKey, tick, attempt)
  for _, run in ipairs(recentRuns(runsKey)) do
    if string.sub(run, 1, #tick + 1) == tick .. ' ' then
      local reruns = string.match(run, '^%S+ %d+ (r*)[-mc]* %S+ %d+$')
      if reruns and #reruns == attempt - 1 then redis.pcall('LREM', runsKey, 1, run) end
      return
    end
  end
end
`;

// features/jobs/redis/lua/include/job-unbegun.lua
const jobUnbegun = `
local function forgetRun(runsKey, recordKey, tick, attempt, lastMissed)
  dropOpenRun(runsKey, tick, attempt)
  local record = lastMissed ~= '' and redis.pcall('HMGET', recordKey, 'owed', 'span') or {}
  if not record[1] and record[2] and string.match(record[2], '^%d+ %d+ (%d+)') == lastMissed then
    redis.pcall('HSET', recordKey, 'owed', lastMissed)
  end
end
`;

// features/jobs/redis/lua/claim-tick.lua
const claimTickScript = `
local lockKey, claimKey, fenceKey, lastKey, runsKey, recordKey, pauseKey, instancesKey = unpack(KEYS)
local owner, leaseMs, keepMs, overlap, takeOver, dueAt, earlyMs, lateMs, lastKeepMs, maxReruns = unpack(ARGV, 1, 10)
local kind, historySize, schedule, previous, nextAt, recordKeepMs, entryTick, differMs, isDate = unpack(ARGV, 11, 19)

-- For example, one run for each of a million orders: they leave nothing behind.
local isRemembered = kind and (historySize ~= '0' or schedule ~= '' or nextAt ~= '')
if isRemembered then noteInstance(instancesKey, owner, recordKeepMs) end
local claim = redis.call('GET', claimKey)
-- The same text recurs, for example for an interval. A release may have shortened the interval.
if claim and dueAt == '' and takeOver == 'nothing' and redis.call('PTTL', claimKey) > tonumber(keepMs) then
  redis.call('PEXPIRE', claimKey, keepMs)
end
local function noteNext()
  redis.pcall('HSET', recordKey, 'next', nextAt, 'stated', string.format('%.0f', now), 'by', string.match(owner, '^[^/]*'))
end
-- This instance follows its schedule, even if another one claimed this tick first.
if claim and kind == 'tick' and schedule ~= '' and nextAt ~= '' then
  local told = redis.pcall('HGET', recordKey, 'next')
  local isOlder = type(told) == 'string' and (tonumber(told) or 0) < tonumber(nextAt)
  if isOlder and redis.call('HGET', recordKey, 'schedule') == schedule then noteNext() end
end
if claim == 'finished' or (takeOver ~= 'nothing' and not claim) then return { 'finished', 0, 0 } end
local claimant, state, attempt = readClaim(claim)
local isMine = claimant == owner
local isBegun = state ~= '' and not isMine and claimant ~= 'returned'
if isBegun then attempt = attempt + 1 end
local holder = readLock(lockKey)
if holder and holder.owner == owner and holder.token then
  renewHolder(lockKey, holder, leaseMs)
  return { 'granted', tonumber(holder.token), attempt, kind == 'catchUp' and readRecord(recordKey).span or nil }
end
local ttl = holder and holderTtl(lockKey) or 0
if claim and not isMine and claimant ~= 'returned' then
  -- Watching instances keep the claim in memory, however long the run takes.
  if takeOver ~= 'nothing' then redis.call('PEXPIRE', claimKey, keepMs) end
  if holder or takeOver == 'nothing' or (isBegun and takeOver == 'unbegun') then
    return { 'taken', ttl, isBegun and 1 or 0 }
  end
  if isBegun and maxReruns ~= '' and attempt > tonumber(maxReruns) + 1 then
    redis.call('SET', claimKey, 'finished', 'PX', keepMs)
    return { 'crashed', attempt - 1, 0 }
  end
end
local record = kind and readRecord(recordKey)
-- True if the record has another schedule that an instance still follows. See JobNote.schedule.
local function isOfOthers()
  local ahead, stated = tonumber(record.next or ''), tonumber(record.stated or '')
  if (record.schedule or '') == schedule or not ahead or not stated then return false end
  return now <= ahead + (tonumber(lateMs) or 60000) and now < stated + 172800000
end
-- This instance follows another schedule than the record has. Accurate to a minute.
local function noteOther()
  if kind ~= 'tick' or schedule == '' or (record.schedule or '') == '' then return nil end
  local since, at, told, text = string.match(record.other or '', '^(%d+) (%d+) (%d) %S+ (.*)$')
  if text ~= schedule or tonumber(at) < now - 172800000 then since, at, told = now, 0, '0' end
  local isNotice = told == '0' and tonumber(since) + tonumber(differMs) < now
  if not isNotice and tonumber(at) > now - 60000 then return nil end
  local instance = string.match(owner, '^[^/]*')
  local other = string.format('%.0f %.0f ', since, now) .. (isNotice and '1' or told) .. ' ' .. instance .. ' ' .. schedule
  redis.pcall('HSET', recordKey, 'other', other)
  return isNotice and record.by .. ' ' .. record.schedule or nil
end
local notice
local function noteSchedule()
  if isOfOthers() then
    notice = noteOther()
    return
  end
  if nextAt ~= '' then noteNext() end
  if schedule ~= '' and record.schedule ~= schedule then
    redis.pcall('HSET', recordKey, 'schedule', schedule)
    redis.pcall('HDEL', recordKey, 'owed')
  end
end
if dueAt ~= '' and not claim then
  local date = isDate == '1' and redis.pcall('HGET', recordKey, 'date')
  if type(date) == 'string' and tonumber(date) ~= tonumber(dueAt) then return { 'otherDate', tonumber(date), 0 } end
  local refusal, byMs = judgeTick(lastKey, dueAt, earlyMs, lateMs)
  -- A manual call claims the last tick that was due. For a new job, that was before it was registered.
  if refusal == 'late' and kind == 'tick' and record.since and record.since == redis.call('GET', lastKey) then
    if tonumber(dueAt) >= now - lateMs and (tonumber(nextAt) or 0) > now then refusal = nil end
  end
  if refusal then return { refusal, byMs, 0 } end
  -- Once this tick is accounted, no earlier one can be claimed.
  if kind and previous ~= '' and record.schedule == schedule then
    local last = tonumber(redis.call('GET', lastKey) or '')
    if last and last <= now + earlyMs and last < tonumber(previous) then return { 'gap', last, now - dueAt } end
  end
end
if kind == 'catchUp' then
  local till = string.match(record.span or '', '(%d+)$')
  if not claim and (record.owed ~= previous or tonumber(till or 0) < now) then return { 'finished', 0, 0 } end
end
local lastKeep, jobKeep = lastKeepMs, nil
if kind then
  jobKeep = keepFor(recordKey, nextAt, recordKeepMs)
  if isRemembered then lastKeep = string.format('%.0f', math.max(jobKeep, tonumber(lastKeepMs) or 0)) end
end
-- The reply to an earlier grant of this owner arrived too late, and now it does not get the run.
local function refuseUnbegun()
  if not kind or not isMine or state == '' then return end
  forgetRun(runsKey, recordKey, entryTick, attempt, kind == 'catchUp' and previous or '')
  if kind == 'catchUp' then redis.call('SET', claimKey, writeClaim('returned', attempt), 'PX', keepMs) end
end
if kind and kind ~= 'manual' then
  local at, till, by = readPause(pauseKey)
  if at and kind == 'tick' then
    -- It is finished for all instances, even those that ask after a resume.
    if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeep) end
    redis.call('SET', claimKey, 'finished', 'PX', keepMs)
    noteSchedule()
    keepJob(recordKey, runsKey, instancesKey, jobKeep)
  end
  if at then
    refuseUnbegun()
    return { 'paused', till, 0, by }
  end
end
if holder and overlap == 'skip' then refuseUnbegun() end
if holder and kind == 'catchUp' and overlap == 'skip' then return { 'overlap', ttl, 0 } end
if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeep) end
if kind then
  if record.since and kind == 'tick' then redis.pcall('HDEL', recordKey, 'since') end
  noteSchedule()
  if holder then keepJob(recordKey, runsKey, instancesKey, jobKeep) end
end
if holder and overlap == 'skip' then
  redis.call('SET', claimKey, 'finished', 'PX', keepMs)
  return { 'overlap', ttl, 0 }
end
local granted = writeClaim(owner, attempt)
if holder then
  -- A grant stays: this may be an old command that arrives after the run.
  redis.call('SET', claimKey, state == '' and owner or granted, 'PX', keepMs)
  return { 'claimed', ttl, 0 }
end
redis.call('SET', claimKey, granted, 'PX', keepMs)
local token = takeLock(lockKey, fenceKey, owner, 'exclusive', leaseMs, leaseMs)
if not kind then return { 'granted', token, attempt } end
if kind == 'catchUp' then redis.pcall('HDEL', recordKey, 'owed') end
local flags = string.rep('r', attempt - 1) .. (kind == 'manual' and 'm' or '') .. (kind == 'catchUp' and 'c' or '')
local entry = entryTick .. ' ' .. now .. ' ' .. (flags == '' and '-' or flags) .. ' ' .. string.match(owner, '^[^/]*')
-- The reply to an earlier grant of this owner arrived too late: that run never began.
if isMine and state ~= '' then dropOpenRun(runsKey, entryTick, attempt) end
addRuns(runsKey, historySize, entry .. ' ' .. string.format('%.0f', token))
keepJob(recordKey, runsKey, instancesKey, jobKeep)
local isNew = nextAt ~= '' and not record.next
return { 'granted', token, attempt, kind == 'catchUp' and record.span or '', isNew and 1 or 0, notice or '' }
`;

// redis/lua/include/passed-on.lua
const passedOn = `
local function passedOn(done)
  return isCut and done + 2 or done
end
`;

// redis/lua/downgrade.lua
const downgradeScript = `
local holder, token, mode, about = readHolder(KEYS[1])
if holder == '' and mode == 'read' then return renewMember(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0 end
if holder ~= ARGV[1] or mode ~= 'write' or not token then return 0 end
local leaseMs = string.format('%.0f', math.max(ARGV[2], redis.call('PTTL', KEYS[1])))
redis.call('DEL', KEYS[1])
local request = parseRequest('read', leaseMs .. string.match(about, '^%d*(.*)$'))
local lock = addMember(KEYS[1], nil, ARGV[1], request, token, leaseMs)
grantWaiting(KEYS[1], KEYS[2], not ARGV[3] and KEYS[3], lock)
return passedOn(1)
`;

// redis/lua/include/releasing.lua
const releasing = `
local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- If another program has overwritten the queue, the lock is still freed.
  local isQueue, number = pcall(findPlace, queueKey, owner)
  if isQueue and number then leaveQueue(queueKey, number, owner) end
  -- Another owner's, or another program's key.
  local isOthers = holder == false or (holder and holder ~= '' and holder ~= owner)
  local released, isKnown, lock = 0, not isOthers, nil
  -- First, even if the lock is passed on: when out of memory, Redis only lets a script begin with a deletion.
  if holder and isKnown then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if not isQueue then return released, isKnown, lock end
  -- If another program has overwritten the fence as well, it grants nothing, and the waiters find out why with their
  -- heartbeats.
  if isKnown then
    isKnown, lock = pcall(grantWaiting, lockKey, queueKey, fenceKey, lock)
    if not isKnown then lock = nil end
  end
  local ends = number and holder and (isOthers and redis.call('PTTL', lockKey) or lock and lock.used and lock.soonest - now) or 0
  if ends > 0 then
    local behind = number
    pcall(firstWaiter, queueKey)
    -- Another program may have overwritten the queue, or the ACL forbids its key. That does not affect the lock.
    local places, heard, unheard = redis.pcall('ZRANGE', queueKey, 0, 15), 0, 0
    for index = 1, #places do
      local position, _, lasts, sentAt = string.match(places[index], PLACE)
      local waiter = places[index + 1]
      if position and tonumber(lasts) > now and waiter and string.find(waiter, '^[^ ].*/') then
        if tonumber(position) <= tonumber(behind) then
          heard = heard + 1
        else
          local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', ends + 1000 * heard + 250 * unheard)
          local said = 'kept ' .. left .. ' ' .. sentAt
          local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
            redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
          if receivers == 0 then unheard = unheard + 1 else heard = heard + 1 end
        end
        if heard >= 4 then break end
      end
    end
  end
  return released, isKnown, lock
end
`;

// features/jobs/redis/lua/end-run.lua
const endRunScript = `
local lockKey, queueKey, fenceKey, runsKey, recordKey = unpack(KEYS)
local owner, token, outcome, errorTexts = unpack(ARGV, 1, 4)

-- First: when out of memory, Redis only lets a script begin with a deletion.
local done = passedOn((releaseLock(lockKey, queueKey, not ARGV[5] and fenceKey, owner)))
local open = ' ' .. token
local hasEnded = false
local function findRun(first, last)
  local entries = redis.pcall('LRANGE', runsKey, first, last)
  for index, run in ipairs(entries.err and {} or entries) do
    -- An ended run has a message at its end.
    if string.sub(run, -#open) == open and string.match(run, '^%S+ %d+ [-rmc]+ %S+ %d+$') then return first + index - 1, run end
    hasEnded = hasEnded or string.find(run, open .. ' ', 1, true) ~= nil
  end
end
local index, run = findRun(0, 63)
-- Many ticks were missed while it ran.
if not index and not hasEnded then index, run = findRun(64, -1) end
if index and outcome == 'none' then
  redis.pcall('LREM', runsKey, 1, run)
elseif index then
  redis.pcall('LSET', runsKey, index, run .. ' ' .. now .. ' ' .. outcome .. ' ' .. errorTexts)
end
-- A repeated command changes nothing.
local isFirst = index or (done % 2 == 1 and not hasEnded)
-- Without a history and a record, the run leaves nothing behind.
local isKept = outcome == 'ok' and isFirst and (index or redis.call('PTTL', recordKey) ~= -2)
if isKept and redis.pcall('HSET', recordKey, 'ok', now) == 1 and redis.call('PTTL', recordKey) < 0 then
  -- There was no record: it lasts as long as the history.
  redis.call('PEXPIRE', recordKey, string.format('%.0f', math.max(redis.call('PTTL', runsKey), 604800000)))
end
return done
`;

// features/jobs/redis/lua/exchange-claim.lua
const exchangeClaimScript = `
local claimKey, lastKey = KEYS[1], KEYS[2]
local to, from, force, drop, keepMs, dueAt, earlyMs, lateMs, lastKeepMs, isJudged, mostMs = unpack(ARGV, 1, 11)

local function sealed(claim)
  if not claim then return claim end
  local owner, rest = string.match(claim, '^(%S-)(~%d+ .*)$')
  if not owner then owner, rest = string.match(claim, '^(%S*)(.*)$') end
  if owner == 'finished' or owner == 'returned' then return claim end
  return redis.sha1hex(owner) .. rest
end

local standing = redis.call('GET', claimKey)
if standing and standing == drop then
  -- Not forgotten: the last tick of the job is known by now, and would reject it. The key goes first: when out of memory,
  -- Redis only lets a script begin with a deletion.
  local ttl = math.max(1, redis.call('PTTL', claimKey))
  standing = 'returned' .. (string.match(standing, '~%d+ reruns$') or string.match(standing, ' reruns$') or '')
  redis.call('DEL', claimKey)
  redis.call('SET', claimKey, standing, 'PX', ttl)
end
if not standing and isJudged == '1' then
  local refusal, byMs = judgeTick(lastKey, dueAt, earlyMs, lateMs)
  if refusal then return refusal .. ' ' .. string.format('%.0f', byMs) end
end
local isOpen = not standing or standing == from or string.match(standing .. ' ', '^returned[ ~]')
  or (force == '1' and standing ~= 'finished')
if to ~= '' and isOpen then
  if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeepMs) end
  redis.call('SET', claimKey, to, 'PX', keepMs)
  return sealed(to)
end
if standing and keepMs ~= '' then redis.call('PEXPIRE', claimKey, keepMs) end
if standing and mostMs ~= '' and redis.call('PTTL', claimKey) > tonumber(mostMs) then
  redis.call('PEXPIRE', claimKey, mostMs)
end
return sealed(standing)
`;

// features/jobs/redis/lua/finish-tick.lua
const finishTickScript = `
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
`;

// redis/lua/force-release.lua
const forceReleaseScript = `
local meant = tonumber(ARGV[1])
-- Two grants of an older version can share the numbers of one: the token that counts up from the larger is meant.
local function isMeant(token)
  return token <= meant and math.floor(token / 64) == math.floor(meant / 64)
end

local holder, token = readHolder(KEYS[1])
if holder == false then
  redis.call('LLEN', KEYS[1])
  return redis.call('GET', KEYS[1])
end
local wasHeld, lock = 0, nil
if holder == '' then
  local entries, owner, largest = redis.call('HGETALL', KEYS[1]), nil, -1
  for index = 1, #entries, 2 do
    local shared = tonumber(string.match(entries[index + 1], '^%d+ (%d+) %d+') or -64)
    if shared > largest and isMeant(shared) then owner, largest = entries[index], shared end
  end
  if owner then wasHeld, lock = removeMember(KEYS[1], owner) end
elseif holder and isMeant(tonumber(token) or 0) then
  wasHeld = redis.call('DEL', KEYS[1])
end
if wasHeld == 0 then return 0 end
grantWaiting(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], lock)
return passedOn(1)
`;

// features/once/redis/lua/forget-result.lua
const forgetResultScript = `
-- First: when out of memory, Redis only lets a script begin with a deletion.
redis.call('DEL', KEYS[2])
local owner = readHolder(KEYS[1])
if owner and owner ~= '' then redis.call('SET', KEYS[2], '!' .. redis.sha1hex(owner), 'PX', ARGV[1]) end
return 1
`;

// features/fence/redis/lua/guard.lua
const guardScript = `
local newest = redis.call('GET', KEYS[1])
if newest then
  if #newest > 16 or not string.find(newest, '^[1-9]%d*$') then
    return redis.error_reply('WRONGTYPE The key holds something that is not a fencing token')
  end
  if tonumber(newest) > tonumber(ARGV[1]) then return { 'stale', newest } end
end
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
local replies, key, value = { 'done' }, 1, 3
for layout in string.gmatch(ARGV[3], '%a+') do
  local command = {}
  for i = 1, #layout do
    if string.sub(layout, i, i) == 'k' then
      key = key + 1
      command[i] = KEYS[key]
    else
      value = value + 1
      command[i] = ARGV[value]
    end
  end
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then return { 'failed', #replies - 1, reply.err } end
  replies[#replies + 1] = reply
end
return replies
`;

// features/jobs/redis/lua/index-jobs.lua
const indexJobsScript = `
local indexKey = KEYS[1]
local command, number = ARGV[1], ARGV[2]

if command == 'list' then return redis.call('ZRANGE', indexKey, 0, -1) end
for index = 3, #ARGV do
  if command == 'add' then
    redis.call('ZADD', indexKey, now, ARGV[index])
  else
    local score = redis.call('ZSCORE', indexKey, ARGV[index])
    -- It may have been registered since it was read.
    if score and tonumber(score) < tonumber(number) then redis.call('ZREM', indexKey, ARGV[index]) end
  end
end
if command == 'add' then
  redis.call('PEXPIRE', indexKey, string.format('%.0f', math.max(number, redis.call('PTTL', indexKey))))
end
return 1
`;

// redis/lua/inspect.lua
const inspectScript = `
-- The part of an owner id before its secret.
local function clientOf(owner)
  return string.sub(string.match(owner, '^(%S+)/') or string.match(owner, '^[^/%s]*'), 1, 200)
end

local waiters = {}
-- The places come first, each with its data before its owner; then their expiries, and the watchers.
local members = redis.call('ZRANGE', KEYS[2], 0, -1)
for index = 1, #members, 2 do
  local expiry = string.match(members[index], '^ %d+ %S+ (%d+) %d+ %d')
  if not expiry or not members[index + 1] then break end
  if tonumber(expiry) > now then
    waiters[#waiters + 1] = clientOf(members[index + 1]) .. string.match(string.sub(members[index], 1, 400), '^[^\\n]*')
  end
end
waiters = table.concat(waiters, '\\n')

local holder, token, mode, about, depth = readHolder(KEYS[1])
if holder == false then
  redis.call('LLEN', KEYS[1])
  return redis.call('GET', KEYS[1])
end
local lines, ttl, total = {}, 0, 0
if holder == '' then
  members = redis.call('HGETALL', KEYS[1])
  for index = 1, #members, 2 do
    if members[index] == 'total' then total = tonumber(members[index + 1]) or 0 end
    local expiry = string.match(members[index + 1], '^%d+ %d+ (%d+)')
    if expiry and tonumber(expiry) > now then
      ttl = math.max(ttl, expiry - now)
      lines[#lines + 1] = clientOf(members[index]) .. ' ' .. string.match(string.sub(members[index + 1], 1, 360), '^[^\\n]*')
    end
  end
elseif holder then
  ttl = holderTtl(KEYS[1])
  lines[1] = string.format('%s %.7s %.20s %.0f ', clientOf(holder), depth or 1, token or 0, now + ttl)
    .. string.match(string.sub(about, 1, 320), '^[^\\n]*')
end
local head = string.format('%.9s %d %.0f', lines[1] and mode or '', #lines, now)
return { ttl, total, head .. '\\n' .. table.concat(lines, '\\n'), waiters }
`;

// features/once/redis/lua/keep-result.lua
const keepResultScript = `
local owner, ttlMs, result = ARGV[1], ARGV[2], ARGV[3]
-- First: when out of memory, Redis only lets a script begin with a deletion.
local held = releaseLock(KEYS[1], KEYS[2], not ARGV[4] and KEYS[3], owner)
if held == 1 then
  if redis.pcall('GET', KEYS[4]) == '!' .. redis.sha1hex(owner) then
    redis.call('DEL', KEYS[4])
  else
    redis.call('SET', KEYS[4], result, 'PX', ttlMs)
  end
end
return passedOn(held)
`;

// redis/lua/keep.lua
const keepScript = `
-- How many fields of shared locks the script reads. If there are more, the owner has to ask.
local glances = 500

-- When the first lease of a shared lock ends according to its members, if all of them can be read: they have been renewed
-- since the lock was last scanned. Drops and counts nothing if a lease has expired: a script that grants does that.
local function soonestOf(lockKey, known)
  local page = glances > 0 and redis.call('HSCAN', lockKey, '0', 'COUNT', 100)
  if not page or page[1] ~= '0' then return known end
  local entries, soonest = page[2], 9000000000000000
  glances = glances - #entries / 2
  for index = 1, #entries, 2 do
    local lasts = tonumber(string.match(entries[index + 1], '^%d+ %d+ (%d+)'))
    if entries[index] == 'sweep' or (lasts and lasts <= now) then return known end
    if lasts then soonest = math.min(soonest, lasts) end
  end
  if soonest >= 1000000000000000 then return known end
  redis.call('HSET', lockKey, 'soonest', string.format('%.0f', soonest))
  return soonest
end

local function keep(lockKey, queueKey, owner, leaseMs, lastPlace)
  -- Most waiters have the same position as before. Then one command finds the place, how many are before it, and whether
  -- it is the only member of the queue, without watchers.
  local before, isOnly = lastPlace - 1, false
  local found = redis.call('ZRANGE', queueKey, 2 * before, 2 * before + 3)
  local data = found[1]
  if found[2] == owner then
    isOnly = before == 0 and #found == 3
  else
    local moved = findPlace(queueKey, owner)
    data = moved and redis.call('ZRANGE', queueKey, moved, moved, 'BYSCORE')[1]
    before = nil
  end
  local number, mode, stands, label = string.match(data or '', '^ (%d+) (%S+) (%d+) %d+ %d+(.*)$')
  if not number or tonumber(stands) <= now then return 0 end
  local holder, token, held, about, depth = readHolder(lockKey)
  if holder == nil or holder == owner then return 0 end
  if not holder then
    redis.call('LLEN', lockKey)
    return redis.call('GET', lockKey)
  end
  -- A single holder excludes everyone else. A request for permits can never be granted then.
  local lock = { owner = holder, token = token, mode = held, about = about, depth = depth }
  if holder == '' or string.sub(mode, 1, 1) == 's' then
    if holder == '' then
      lock = {
        mode = held, used = tonumber(about[2]), soonest = tonumber(about[3]),
        total = tonumber(about[4]), resized = about[5] == '1',
      }
      if lock.soonest <= now then lock.soonest = soonestOf(lockKey, lock.soonest) end
    end
    local request = parseRequest(mode)
    -- Without a count, it was written by another program.
    if not request.count or isMismatch(lock, request) then return 0 end
    -- A shared lock that may have room: only acquire.lua finds out, for the first waiter.
    if lock.used and (lock.soonest <= now or lock.used <= 0 or admits(lock, request)) then
      local first, _, lasts = string.match(redis.call('ZRANGE', queueKey, 0, 0)[1], PLACE)
      if not first or first == number or tonumber(lasts) <= now then return 0 end
    end
  end

  local expiry = now + leaseMs
  local place, soonest = ' ' .. mode .. ' ' .. expiry .. ' ' .. ARGV[1] .. ' ' .. leaseMs .. label, expiry
  local rewritten = ' ' .. number .. place
  -- In this order, the place is complete even if Redis rejects a command, for lack of memory or a permission.
  redis.call('ZADD', queueKey, expiry, '#' .. number, number, rewritten)
  -- Another program may have removed it. Within a millisecond, both are the same.
  if data ~= owner and data ~= rewritten then redis.call('ZREM', queueKey, data) end
  before = before or redis.call('ZCOUNT', queueKey, '-inf', '(' .. number) / 2
  if isOnly or redis.call('PTTL', queueKey) < tonumber(leaseMs) then redis.call('PEXPIRE', queueKey, leaseMs) end
  if not isOnly then
    soonest = redis.call('ZRANGE', queueKey, '(' .. now, '(100000000000000', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    soonest = tonumber(soonest[2] or expiry)
  end
  if held == 'read' then soonest = math.max(now + 1, math.min(soonest, lock.soonest)) end
  -- If a lease has expired, it has to ask in a moment, which scans the lock even if the first waiter is dead.
  local ttl = (held == 'semaphore' or lock.soonest and lock.soonest <= now) and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  local seen = ''
  if lock and lock.owner then
    local client = string.match(lock.owner, '^(%S+)/')
    if client then
      -- A token that was minted here is a number, and Lua prints 14 digits of those.
      local standing = type(lock.token) == 'string' and string.sub(lock.token, 1, 20) or string.format('%.0f', lock.token or 0)
      seen = string.format('%.9s 1 %.0f\\n', lock.mode, now) .. string.sub(client, 1, 200) .. ' '
        .. (lock.depth and string.sub(lock.depth, 1, 7) or 1) .. ' ' .. standing .. string.format(' %.0f ', now + ttl)
        .. (#lock.about < 17 and lock.about or string.match(string.sub(lock.about, 1, 320), '^[^\\n]*'))
    end
  elseif lock and not isCut then
    local named = {}
    -- 8 of this many fields are members, because at most 6 are not.
    local fields = redis.pcall('HRANDFIELD', lockKey, 14, 'WITHVALUES')
    for index = 1, #fields, 2 do
      local client = string.match(fields[index], '^(%S+)/')
      if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 360), '^[^\\n]*') end
    end
    local count = #named
    -- There may be more. For readers, used is their number.
    if #fields == 28 then
      count = lock.total and redis.call('HLEN', lockKey) - (lock.sweep and 6 or 5) or lock.used or count
    end
    if named[1] then
      seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\\n' .. table.concat(named, '\\n')
    end
  end
  return { ttl, seen, before + 1, soonest - now }
end

local replies = {}
for place = 1, (#ARGV - 1) / 3 do
  -- By the arguments: on a cluster there is one more key.
  local lock, first = 2 * place - 1, 3 * place - 1
  local isDone, reply = pcall(keep, KEYS[lock], KEYS[lock + 1], ARGV[first], ARGV[first + 1], ARGV[first + 2])
  if not isDone then
    -- A text in some versions; before Redis 7, it begins with the line of the script.
    reply = type(reply) == 'table' and reply.err or tostring(reply)
    if not string.find(reply, '^%u+ ') then reply = 'ERR ' .. reply end
    local isOwn = string.find(reply, 'WRONGTYPE', 1, true) or string.find(reply, 'NOPERM', 1, true)
      or string.find(reply, 'The user executing', 1, true)
    if not isOwn then return { err = reply } end
  end
  replies[#replies + 1] = reply
end
return replies
`;

// redis/lua/label.lua
const labelScript = `
local owner, label = ARGV[1], ARGV[2] ~= '' and ' ' .. ARGV[2] or ''
local holder, token, mode, about, depth = readHolder(KEYS[1])
if holder == '' then
  local permits, known, expiry, told = findMember(KEYS[1], owner)
  if not permits then return 0 end
  local lease = string.match(told, '^%d+')
  redis.call('HSET', KEYS[1], owner, permits .. ' ' .. known .. string.format(' %.0f ', expiry) .. lease .. label)
  return 1
end
if holder ~= owner then return 0 end
about = string.match(about, '^%d*') .. label
writeHolder(KEYS[1], { owner = owner, token = token, mode = mode, about = about, depth = depth })
return 1
`;

// features/jobs/redis/lua/look-jobs.lua
const lookJobsScript = `
local function listOf(reply)
  return type(reply) == 'table' and not reply.err and reply or {}
end

-- A value written by another program counts as none.
local function textOf(key)
  local reply = redis.pcall('GET', key)
  return type(reply) == 'string' and reply or ''
end

local mostRuns, mostInstances = tonumber(ARGV[1]), tonumber(ARGV[2])
local jobs = { now }
-- A cluster adds a key at the end.
for base = 0, #KEYS - 6, 6 do
  local _, token = readHolder(KEYS[base + 1])
  local most = math.max(mostRuns, token and 8 or 0)
  local runs = most > 0 and listOf(redis.pcall('LRANGE', KEYS[base + 3], 0, most - 1)) or {}
  if token and #runs == most then
    -- A run in progress may come after ticks that were missed while it ran.
    local isFound, open = false, ' ' .. token
    for _, run in ipairs(runs) do isFound = isFound or string.sub(run, -#open) == open end
    for _, run in ipairs(isFound and {} or listOf(redis.pcall('LRANGE', KEYS[base + 3], most, -1))) do
      if string.sub(run, -#open) == open then runs[#runs + 1] = run end
    end
  end
  local record = listOf(redis.pcall('HMGET', KEYS[base + 4], 'next', 'ok', 'missed', 'owed', 'span', 'pause', 'schedule', 'stated', 'other'))
  local instances, count = {}, ''
  if mostInstances > 0 then
    instances = listOf(redis.pcall('ZRANGE', KEYS[base + 6], 0, mostInstances - 1, 'REV', 'WITHSCORES'))
    count = #instances / 2
    if count == mostInstances then count = redis.call('ZCARD', KEYS[base + 6]) end
  end
  local isKnown = record[1] or record[2] or record[3] or record[4] or record[5] or record[6] or record[7]
  local size = #jobs
  jobs[size + 1] = (isKnown and 1 or '') .. '\\n' .. textOf(KEYS[base + 2]) .. '\\n' .. (token or '') .. '\\n' .. count .. '\\n'
    .. (record[1] or '') .. '\\n' .. (record[2] or '') .. '\\n' .. (record[3] or '') .. '\\n' .. (record[4] or '') .. '\\n'
    .. (record[5] or '') .. '\\n' .. (record[6] or '') .. '\\n' .. (record[8] or '') .. '\\n' .. (record[9] or '') .. '\\n' .. (record[7] or '')
  jobs[size + 2] = textOf(KEYS[base + 5])
  jobs[size + 3] = #runs == 1 and runs[1] or table.concat(runs, '\\n')
  jobs[size + 4] = table.concat(instances, '\\n')
end
return jobs
`;

// redis/lua/lower-permits.lua
const lowerPermitsScript = `
local lock = readLock(KEYS[1])
if not lock or lock.mode ~= 'semaphore' then return 0 end
local permits, token, expiry, about = findMember(KEYS[1], ARGV[1])
if not permits then return 0 end
local freed = permits - ARGV[2]
if freed > 0 then
  -- First: when out of memory, Redis only lets a script begin with this.
  keepAlive(KEYS[1], expiry - now)
  lock.used = lock.used - freed
  local entry = ARGV[2] .. ' ' .. token .. ' ' .. string.format('%.0f', expiry) .. ' ' .. about
  redis.call('HSET', KEYS[1], ARGV[1], entry, 'used', lock.used)
end
grantWaiting(KEYS[1], KEYS[2], not ARGV[3] and KEYS[3], lock)
return passedOn(1)
`;

// redis/lua/mark-done.lua
const markDoneScript = `
if ARGV[1] == '' then
  local doneAt = redis.call('GET', KEYS[2])
  return doneAt and now - (tonumber(doneAt) or now)
end
if readHolder(KEYS[1]) ~= ARGV[1] then return nil end
redis.call('SET', KEYS[2], now, 'PX', ARGV[2])
return 0
`;

// features/jobs/redis/lua/note-missed.lua
const noteMissedScript = `
local lastKey, runsKey, recordKey, pauseKey, instancesKey = unpack(KEYS)
local schedule, after, historySize, runWithinMs, nextAt, recordKeepMs, lastKeepMs, owner = unpack(ARGV, 1, 8)
local earlierCount, earlierFirst, earlierLast = ARGV[9], ARGV[10], ARGV[11]

local record = readRecord(recordKey)
local function owedNow()
  local till = string.match(record.span or '', '(%d+)$')
  return record.owed and tonumber(till or 0) >= now and record.span or ''
end
local last = redis.call('GET', lastKey)
local told = after .. ' ' .. ARGV[#ARGV] .. ' ' .. owner
local isCurrent = last and tonumber(last) == tonumber(after) and record.schedule == schedule
-- The same instance gets the same reply again: the first one was lost. First, because most instances are rejected here.
if not isCurrent and record.told ~= told then return { 'stale', 0, 0, 0, owedNow(), {} } end
local pausedAt, pausedTill = readPause(pauseKey)
local pauses = {}
for from, till in string.gmatch(record.pause or '', '(%d+) (%d+)') do
  pauses[#pauses + 1] = { from = tonumber(from), till = tonumber(till) }
end
local function isPaused(tick)
  if pausedAt and tick >= pausedAt and (pausedTill == 0 or tick <= pausedTill) then return true end
  for _, pause in ipairs(pauses) do
    if tick >= pause.from and tick <= pause.till then return true end
  end
  return false
end

local ticks, entries, count, first = {}, {}, tonumber(earlierCount), tonumber(earlierFirst)
if count > 0 and isPaused(first) then count, first = 0, nil end
local instance = string.match(owner, '^[^/]*')
for index = 12, #ARGV do
  local tick = tonumber(ARGV[index])
  if not isPaused(tick) then
    ticks[#ticks + 1] = tick
    first = first or tick
    entries[#entries + 1] = ARGV[index] .. ' ' .. now .. ' x ' .. instance
  end
end
count = count + #ticks
local newest = ticks[#ticks] or tonumber(earlierLast)
local downFrom, downTill = string.match(record.down or '', '^(%d+) (%d+)$')
local isDown = downFrom and count > 0 and first >= tonumber(downFrom) and newest <= tonumber(downTill) and 1 or 0

if not isCurrent then
  if count > 0 then return { 'noted', count, first, newest, owedNow(), ticks, isDown } end
  return { 'stale', 0, 0, 0, owedNow(), {} }
end
local ttl = keepFor(recordKey, nextAt, recordKeepMs)
redis.call('SET', lastKey, ARGV[#ARGV], 'PX', string.format('%.0f', math.max(ttl, lastKeepMs)))
if count == 0 then return { 'noted', 0, 0, 0, owedNow(), {} } end

redis.pcall('HSET', recordKey, 'missed', string.format('%.0f', (tonumber(record.missed) or 0) + count), 'told', told)
if #entries > 0 then addRuns(runsKey, historySize, unpack(entries)) end
if runWithinMs ~= '' and newest + runWithinMs >= now then
  local owedCount, owedFirst = string.match(owedNow(), '^(%d+) (%d+)')
  local span = string.format('%.0f %.0f %.0f %.0f', count + (owedCount or 0), tonumber(owedFirst or first), newest, newest + runWithinMs)
  redis.pcall('HSET', recordKey, 'owed', string.format('%.0f', newest), 'span', span)
  record.owed, record.span = newest, span
end
keepJob(recordKey, runsKey, instancesKey, ttl)
return { 'noted', count, first, newest, owedNow(), ticks, isDown }
`;

// features/jobs/redis/lua/pause-job.lua
const pauseJobScript = `
local pauseKey, recordKey, lastKey = KEYS[1], KEYS[2], KEYS[3]
local command, untilAt, by, keepMs, mostPauses = unpack(ARGV, 1, 5)

local standing = redis.call('GET', pauseKey) or ''
if command == 'resume' then
  if standing == '' then return '' end
  redis.call('DEL', pauseKey)
  local record = readRecord(recordKey)
  if record.schedule then
    -- Ticks due during the pause were not missed.
    local last = tonumber(redis.call('GET', lastKey) or '') or 0
    local ttl = keepFor(recordKey, '', keepMs)
    if last < now then redis.call('SET', lastKey, string.format('%.0f', now), 'PX', ttl) end
  end
  redis.pcall('HDEL', recordKey, 'pause')
  return standing
end
local at = readPause(pauseKey) or now
local text = string.format('%.0f ', at) .. untilAt .. ' ' .. by
if untilAt == '0' then
  redis.call('SET', pauseKey, text)
else
  local left = math.max(1, untilAt - now)
  redis.call('SET', pauseKey, text, 'PX', string.format('%.0f', left))
  -- Remembered after its end: ticks due during the pause were not missed. Earlier pauses are remembered until their
  -- ticks are accounted. A replaced pause ends when the new one begins.
  local last = tonumber(redis.pcall('GET', lastKey) or '') or 0
  local pauses = {}
  for from, till in string.gmatch(readRecord(recordKey).pause or '', '(%d+) (%d+)') do
    if tonumber(till) > last and tonumber(from) ~= at then pauses[#pauses + 1] = from .. ' ' .. till end
  end
  pauses[#pauses + 1] = string.format('%.0f ', at) .. untilAt
  redis.pcall('HSET', recordKey, 'pause', table.concat(pauses, ' ', math.max(1, #pauses - mostPauses + 1)))
  redis.pcall('PEXPIRE', recordKey, keepFor(recordKey, untilAt, keepMs))
end
return standing
`;

// redis/lua/probe-inbox.lua
const probeInboxScript = `redis.call('DEL', KEYS[1])
return redis.pcall('PUBLISH', ARGV[1], ARGV[2])
`;

// redis/lua/probe.lua
const probeScript = `local key, fence, channel = KEYS[1] or ARGV[1], KEYS[2] or ARGV[2], ARGV[3]
local refusals = {}

local function isAllowed(what, ...)
  local said = redis.pcall(...)
  said = type(said) == 'table' and said.err or ''
  -- Redis 7.2 and later; the versions before it.
  if not string.find(said, 'NOPERM', 1, true) and not string.find(said, 'The user executing', 1, true) then return true end
  table.insert(refusals, what)
  table.insert(refusals, said)
  return false, string.find(said, ' key', 1, true) ~= nil
end

-- Redis checks the command first. If it rejects the key, it rejects it for every command, so none can write.
local isText, isKeyRefused = isAllowed('set', 'SET', key, 'probe', 'PX', 1000)
local isSafe = isText or isKeyRefused
isAllowed('fence', 'EXISTS', fence)

local arguments = {
  del = {key}, exists = {key}, get = {key}, pexpire = {key, 1000}, pttl = {key},
  hrandfield = {key}, hdel = {key, ''}, hget = {key, ''}, hgetall = {key}, hlen = {key}, hmget = {key, ''}, hscan = {key, 0},
  zadd = {key, 'no number', ''}, zcard = {key}, zcount = {key, 0, 0}, zrange = {key, 0, 0}, zrem = {key, ''},
  zscore = {key, ''}, llen = {key}, publish = {channel, ''}, ['pubsub|numsub'] = {channel},
  ['pubsub|channels'] = {channel}, time = {},
  lrange = {key, 0, 0}, ltrim = {key, 0, 0}, lrem = {key, 0, ''}, lset = {key, 0, ''},
  info = {'server'},
  -- These would write, if there were no text and the key were allowed.
  hset = isSafe and {key, '', ''}, incrby = isSafe and {key, 0}, lpush = isSafe and {key, ''},
}
local function try(command)
  local form = arguments[command]
  if form == nil then
    table.insert(refusals, command)
    table.insert(refusals, 'ERR probe.lua does not know how to try it')
  elseif form then
    local name, subcommand = string.match(command, '^(%w+)|?(%w*)$')
    if subcommand ~= '' then table.insert(form, 1, subcommand) end
    isAllowed(command, name, unpack(form))
  end
end

for command in string.gmatch(ARGV[4], '%S+') do
  if command ~= 'set' and command ~= 'del' then try(command) end
end
isAllowed('roll', 'PUBLISH', ARGV[5], '')
-- Last, because it removes the text.
try('del')
return refusals
`;

// redis/lua/quarantine.lua
const quarantineScript = `
local info = redis.call('INFO')
local upSeconds = string.match(info, 'uptime_in_seconds:(-?%d+)')
if not upSeconds then return redis.error_reply('ERR INFO does not say uptime_in_seconds') end
local clock, data = redis.call('TIME'), redis.call('EXISTS', KEYS[1])
if data == 1 and string.find(info, 'aof_enabled:1', 1, true) then data = 2 end
return {
  string.match(info, 'run_id:(%w+)') or '', tonumber(upSeconds), clock[1] * 1000 + math.floor(clock[2] / 1000), data,
}
`;

// redis/lua/raise-token.lua
const raiseTokenScript = `
local owner, raised = ARGV[1], tonumber(ARGV[2])
-- Read before anything is written: another program's key is a WRONGTYPE error.
local holder, token, mode, about, depth = readHolder(KEYS[1])
local permits, expiry
if holder == '' then
  permits, token, expiry, about = findMember(KEYS[1], owner)
  if permits then holder = owner end
end
-- The last half of its tick: see mint.lua.
local half = math.floor(raised / 64) * 2 + 1
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
if not last then redis.call('LLEN', KEYS[2]) end
if half > last then redis.call('SET', KEYS[2], string.format('%.0f', half)) end
if holder ~= owner then return 0 end
if (tonumber(token) or 0) >= raised then return 1 end
if permits then
  redis.call('HSET', KEYS[1], owner, permits .. ' ' .. ARGV[2] .. ' ' .. string.format('%.0f', expiry) .. ' ' .. about)
else
  writeHolder(KEYS[1], { owner = owner, token = ARGV[2], mode = mode, about = about, depth = depth })
end
return 1
`;

// features/once/redis/lua/read-result.lua
const readResultScript = `
return redis.call('GET', KEYS[1])
`;

// redis/lua/read-roll.lua
const readRollScript = `
local command = ARGV[1]
if command == 'count' then return redis.call('HLEN', KEYS[1]) end
if command == 'answers' then return redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3]) end
return redis.pcall('PUBSUB', 'CHANNELS', ARGV[2])
`;

// features/jobs/redis/lua/register-job.lua
const registerJobScript = `
local recordKey, lastKey, instancesKey, runsKey = unpack(KEYS)
local owner, schedule, nextAt, keepMs, command, date, startMs = unpack(ARGV, 1, 7)

if command == 'leave' then
  local left = redis.pcall('ZREM', instancesKey, string.match(owner, '^[^/]*'))
  if left == 1 and redis.call('EXISTS', instancesKey) == 0 and redis.call('EXISTS', recordKey) == 1 then
    redis.pcall('HSET', recordKey, 'down', string.format('%.0f', now))
  end
  return 1
end

local record = readRecord(recordKey)
local ttl = keepFor(recordKey, nextAt, keepMs)
local last = tonumber(redis.call('GET', lastKey) or '')
if schedule ~= '' and (record.schedule ~= schedule or not last) then
  local since = string.format('%.0f', now)
  if not last or last < now then redis.call('SET', lastKey, since, 'PX', ttl) end
  redis.call('HDEL', recordKey, 'owed', 'since')
  if not last then redis.call('HSET', recordKey, 'since', since) end
end
if record.schedule and schedule ~= '' and record.schedule ~= schedule then
  local since = string.format('%.0f', now)
  redis.call('HSET', recordKey, 'other', since .. ' ' .. since .. ' 0 ' .. record.by .. ' ' .. record.schedule)
end
if date ~= '' then
  local known = tonumber(redis.pcall('HGET', recordKey, 'date') or '')
  if not known or known > now or known + tonumber(startMs) < now then redis.call('HSET', recordKey, 'date', date) end
end
-- All instances had been shut down until now.
if record.down and not string.find(record.down, ' ') then
  redis.call('HSET', recordKey, 'down', record.down .. string.format(' %.0f', now))
end
-- For a job whose ticks have no order, the last claim reported when it may run next.
if schedule ~= '' or record.schedule or not record.stated then
  redis.call('HSET', recordKey, 'schedule', schedule, 'next', nextAt, 'stated', string.format('%.0f', now), 'by', string.match(owner, '^[^/]*'))
  if schedule == '' then redis.call('HDEL', recordKey, 'schedule') end
end
redis.pcall('ZREM', instancesKey, string.match(owner, '^[^/]*'))
noteInstance(instancesKey, owner, keepMs)
keepJob(recordKey, runsKey, instancesKey, ttl)
return 1
`;

// redis/lua/release.lua
const releaseScript = `
-- The owner's, without waiters: the usual case. A lock of another mode is not a string.
local text = redis.pcall('GET', KEYS[1])
local isOwners = type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' '
if isOwners and redis.call('EXISTS', KEYS[2]) == 0 then return redis.call('DEL', KEYS[1]) end
`;

// redis/lua/release.lua
const releaseScript2 = `
if type(text) == 'table' and redis.call('EXISTS', KEYS[2]) == 0 then
  local fields = redis.pcall('HMGET', KEYS[1], 'owner', ARGV[1], 'used', 'soonest')
  if fields[1] == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  -- A member, and no lease has expired: the others stay as they are.
  local permits = string.match(fields[2] or '', '^%d+')
  if permits and tonumber(fields[3]) and (tonumber(fields[4]) or 0) > now then
    local left = fields[3] - permits
    if left == 0 then return redis.call('DEL', KEYS[1]) end
    redis.call('HDEL', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], 'used', left)
    return 1
  end
end

-- The owner's, with a first waiter of the usual kind.
if isOwners and not ARGV[2] then
  local isPassed, tokenText = nil, ''
  local head = redis.pcall('ZRANGE', KEYS[2], '0', '1')
  local number, expiry, sentAt, about = string.match(head[1] or '', '^ (%d+) exclusive (%d+) (%d+) (%d.*)$')
  local waiter = head[2] or ''
  local listener, leaseMs = string.match(waiter, '^([^ ].*)/'), (expiry or now) - now
  local isSimple = listener and leaseMs > 0 and leaseMs < 1000000000000000
  if isSimple and not redis.pcall('ZSCORE', KEYS[2], ARGV[1]) then
    local prefix, inCluster = string.gsub(string.sub(KEYS[3], 1, -6), '{[^{}]*}:$', '')
    local channel = prefix .. 'inbox:' .. listener
    local listeners = inCluster == 0 and redis.pcall('PUBSUB', 'NUMSUB', channel)
    if not listeners or (listeners[2] or 0) > 0 then
      isPassed = pcall(function()
        redis.call('ZREM', KEYS[2], waiter, head[1], '#' .. number)
        -- Usually one command: the floor has to be set only once per millisecond. '2' is a string, because Redis needs 0.25 µs to
        -- format a Lua number.
        local half = redis.pcall('INCRBY', KEYS[3], '2')
        if type(half) == 'table' then
          -- A text of another program: LLEN raises Redis's own WRONGTYPE.
          if string.find(half.err, 'integer') or string.find(half.err, 'overflow') then redis.call('LLEN', KEYS[3]) end
          half = redis.call('INCRBY', KEYS[3], '2')
        end
        -- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
        if half > 281474976710655 then redis.call('LLEN', KEYS[3]) end
        local floor = (now - 1577836800000) * 100
        if half < floor then
          -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
          half = (half == 2 and floor + 100 + 2 * math.floor(clock[2] % 1000 / 20) or floor) + 1
          redis.call('SET', KEYS[3], string.format('%.0f', half))
        elseif half % 2 == 0 then
          half = half + 1
          redis.call('SET', KEYS[3], string.format('%.0f', half))
        end
        local token = (half - 1) * 32
        tokenText = string.format('%.0f', token)
        redis.call('SET', KEYS[1], waiter .. ' ' .. tokenText .. ' ' .. about, 'PX', leaseMs)
        local terms = tokenText .. ' ' .. sentAt
        redis.pcall('PUBLISH', channel,
          redis.sha1hex(terms .. ' ' .. waiter) .. ' ' .. terms .. ' ' .. string.match(KEYS[1], '{([^{}]*)}$'))
      end)
      -- The SET replaces it.
      if not isPassed then redis.call('DEL', KEYS[1]) end
    end
  end
  if isPassed ~= nil then return 1 end
end
`;

// redis/lua/release.lua
const releaseScript3 = `return passedOn((releaseLock(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], ARGV[1], text)))`;

// redis/lua/include/shortened.lua
const shortened = `
local function tellOfEnd(lockKey, queueKey, ends)
  local behind = 0
  pcall(firstWaiter, queueKey)
  -- Another program may have overwritten the queue, or the ACL forbids its key. That does not affect the lock.
  local places, heard, unheard = redis.pcall('ZRANGE', queueKey, 0, 15), 0, 0
  for index = 1, #places do
    local position, _, lasts, sentAt = string.match(places[index], PLACE)
    local waiter = places[index + 1]
    if position and tonumber(lasts) > now and waiter and string.find(waiter, '^[^ ].*/') then
      if tonumber(position) <= tonumber(behind) then
        heard = heard + 1
      else
        local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', ends + 1000 * heard + 250 * unheard)
        local said = 'kept ' .. left .. ' ' .. sentAt
        local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
          redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
        if receivers == 0 then unheard = unheard + 1 else heard = heard + 1 end
      end
      if heard >= 4 then break end
    end
  end
end
`;

// redis/lua/renew-exactly.lua
const renewExactlyScript = `
local leaseMs = tonumber(ARGV[2])
local owner, token, mode, about, depth = readHolder(KEYS[1])
if owner == '' then
  local _, _, expiry = findMember(KEYS[1], ARGV[1])
  if not renewMember(KEYS[1], ARGV[1], leaseMs, true) then return 0 end
  if now + leaseMs < expiry then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
  return 1
end
if owner ~= ARGV[1] then return 0 end
local holder = { owner = owner, token = token, mode = mode, about = about, depth = depth }
if leaseMs < renewHolder(KEYS[1], holder, leaseMs, true) then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
return 1
`;

// redis/lua/renew.lua
const renewScript = `
-- An exclusive lock of this owner, renewed as before: the usual case, which needs no clock.
local replies, texts, areUsual = {}, {}, true
for lease = 1, #ARGV / 2 do
  -- By the arguments: on a cluster there is one more key.
  local lockKey, owner, leaseMs = KEYS[lease], ARGV[2 * lease - 1], ARGV[2 * lease]
  local text, known = redis.pcall('GET', lockKey), owner .. ' '
  local isUsual = type(text) == 'string' and string.sub(text, 1, #known) == known
    and string.match(text, '^%d+ (%d+)', #known + 1) == leaseMs
  if isUsual and redis.call('PTTL', lockKey) <= tonumber(leaseMs) then
    replies[lease] = redis.call('PEXPIRE', lockKey, leaseMs)
  else
    replies[lease], texts[lease] = 0, text
    areUsual = areUsual and not text
  end
end
if areUsual then return replies end
`;

// redis/lua/renew.lua
const renewScript2 = `
local function renew(lockKey, owner, leaseMs, text)
  local present, token, mode, about, depth = readHolder(lockKey, text)
  if present == '' then return renewMember(lockKey, owner, leaseMs) and 1 or 0 end
  if present ~= owner then return 0 end
  renewHolder(lockKey, { owner = owner, token = token, mode = mode, about = about, depth = depth }, leaseMs)
  return 1
end

for lease = 1, #ARGV / 2 do
  if texts[lease] then
    local lockKey, owner, leaseMs = KEYS[lease], ARGV[2 * lease - 1], tonumber(ARGV[2 * lease])
    local isDone, reply = pcall(renew, lockKey, owner, leaseMs, texts[lease])
    if not isDone then
      -- A text in some versions; before Redis 7, it begins with the line of the script.
      reply = type(reply) == 'table' and reply.err or tostring(reply)
      if not string.find(reply, '^%u+ ') then reply = 'ERR ' .. reply end
      local isOwn = string.find(reply, 'WRONGTYPE', 1, true) or string.find(reply, 'NOPERM', 1, true)
        or string.find(reply, 'The user executing', 1, true)
      if not isOwn then return { err = reply } end
    end
    replies[lease] = reply
  end
end
return replies
`;

// redis/lua/resize.lua
const resizeScript = `
local lock = readLock(KEYS[1])
if not lock then return 1 end
if lock.mode ~= 'semaphore' then return 0 end
resize(KEYS[1], lock, tonumber(ARGV[1]))
grantWaiting(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], lock)
return passedOn(1)
`;

// redis/lua/retain.lua
const retainScript = `
local owner, leftMs, fenceKey = ARGV[1], tonumber(ARGV[3]), not ARGV[4] and KEYS[3]
local client = string.match(owner, '^(.*)/')
local kept = client .. '/' .. redis.sha1hex(owner)
local holder, token, mode, about = readHolder(KEYS[1])
local isKept, permits = holder == kept, nil
if holder == '' then
  isKept = findMember(KEYS[1], kept) and true
  local standing = { findMember(KEYS[1], owner) }
  permits, token, about = standing[1], standing[2], standing[4]
  if permits then holder = owner end
end
if isKept then
  -- Repeated. In between, a late acquire may have queued the owner, or granted it another share.
  releaseLock(KEYS[1], KEYS[2], fenceKey, owner)
  return passedOn(1)
end
-- A tick is 20 microseconds and has 64 tokens.
if holder == owner and ARGV[2] ~= '' and token then
  leftMs = math.min(leftMs, 1577836800000 + math.floor(token / 3200) + ARGV[2] - now)
end
if holder ~= owner or leftMs < 1 then return passedOn((releaseLock(KEYS[1], KEYS[2], fenceKey, owner))) end

local forMs = string.format('%.0f', leftMs)
about = '0' .. string.match(about, '^%d*(.*)$')
if permits then
  local lock = readMembers(KEYS[1])
  redis.call('HDEL', KEYS[1], owner)
  lock.used = lock.used - permits
  local request = { mode = mode, count = tonumber(permits), about = about }
  addMember(KEYS[1], lock, kept, request, token, forMs)
else
  -- First: when out of memory, Redis only lets a script begin with this.
  redis.call('PEXPIRE', KEYS[1], forMs)
  writeHolder(KEYS[1], { owner = kept, token = token, mode = mode, about = about, depth = 1 })
end

-- The first waiters know the old end of the lease. They are notified of the time that is left now.
local lockKey, queueKey, ends, behind = KEYS[1], KEYS[2], leftMs, 0
pcall(firstWaiter, queueKey)
-- Another program may have overwritten the queue, or the ACL forbids its key. That does not affect the lock.
local places, heard, unheard = redis.pcall('ZRANGE', queueKey, 0, 15), 0, 0
for index = 1, #places do
  local position, _, lasts, sentAt = string.match(places[index], PLACE)
  local waiter = places[index + 1]
  if position and tonumber(lasts) > now and waiter and string.find(waiter, '^[^ ].*/') then
    if tonumber(position) <= tonumber(behind) then
      heard = heard + 1
    else
      local prefix, left = string.match(lockKey, '^(.*){[^{}]*}$'), string.format('%.0f', ends + 1000 * heard + 250 * unheard)
      local said = 'kept ' .. left .. ' ' .. sentAt
      local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
        redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
      if receivers == 0 then unheard = unheard + 1 else heard = heard + 1 end
    end
    if heard >= 4 then break end
  end
end
return 1
`;

// redis/lua/rotate.lua
const rotateScript = `
local askedMode, limit, labelText = ARGV[5] or '', tonumber(ARGV[6] or '') or 10000, ARGV[7]
if askedMode == '' then askedMode = 'exclusive' end
if labelText == '' then labelText = nil end

-- The owner holds the lock, the first waiter is of the usual kind, and the next waiter asks for the first time, for the
-- lock alone. Does what acquireLock does then, written out: each function of the includes below costs as much as a command.
local text = askedMode == 'exclusive' and ARGV[4] ~= '' and redis.pcall('GET', KEYS[1])
local isOwners = type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' '
local isFreed = false
-- A call that cancels older ones also notifies them: see acquiring.lua.
if isOwners and string.sub(ARGV[2], -1) ~= '!' and not redis.pcall('ZSCORE', KEYS[2], ARGV[2]) then
  local isPassed, tokenText = nil, ''
  local head = redis.pcall('ZRANGE', KEYS[2], '0', '1')
  local number, expiry, sentAt, about = string.match(head[1] or '', '^ (%d+) exclusive (%d+) (%d+) (%d.*)$')
  local waiter = head[2] or ''
  local listener, leaseMs = string.match(waiter, '^([^ ].*)/'), (expiry or now) - now
  local isSimple = listener and leaseMs > 0 and leaseMs < 1000000000000000
  if isSimple and not redis.pcall('ZSCORE', KEYS[2], ARGV[1]) then
    local prefix, inCluster = string.gsub(string.sub(KEYS[3], 1, -6), '{[^{}]*}:$', '')
    local channel = prefix .. 'inbox:' .. listener
    local listeners = inCluster == 0 and redis.pcall('PUBSUB', 'NUMSUB', channel)
    if not listeners or (listeners[2] or 0) > 0 then
      isPassed = pcall(function()
        redis.call('ZREM', KEYS[2], waiter, head[1], '#' .. number)
        -- Usually one command: the floor has to be set only once per millisecond. '2' is a string, because Redis needs 0.25 µs to
        -- format a Lua number.
        local half = redis.pcall('INCRBY', KEYS[3], '2')
        if type(half) == 'table' then
          -- A text of another program: LLEN raises Redis's own WRONGTYPE.
          if string.find(half.err, 'integer') or string.find(half.err, 'overflow') then redis.call('LLEN', KEYS[3]) end
          half = redis.call('INCRBY', KEYS[3], '2')
        end
        -- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
        if half > 281474976710655 then redis.call('LLEN', KEYS[3]) end
        local floor = (now - 1577836800000) * 100
        if half < floor then
          -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
          half = (half == 2 and floor + 100 + 2 * math.floor(clock[2] % 1000 / 20) or floor) + 1
          redis.call('SET', KEYS[3], string.format('%.0f', half))
        elseif half % 2 == 0 then
          half = half + 1
          redis.call('SET', KEYS[3], string.format('%.0f', half))
        end
        local token = (half - 1) * 32
        tokenText = string.format('%.0f', token)
        redis.call('SET', KEYS[1], waiter .. ' ' .. tokenText .. ' ' .. about, 'PX', leaseMs)
        local terms = tokenText .. ' ' .. sentAt
        redis.pcall('PUBLISH', channel,
          redis.sha1hex(terms .. ' ' .. waiter) .. ' ' .. terms .. ' ' .. string.match(KEYS[1], '{([^{}]*)}$'))
      end)
      -- The SET replaces it.
      if not isPassed then redis.call('DEL', KEYS[1]) end
    end
  end
  if isPassed then
    local lock, ttl = { owner = waiter, token = tokenText, mode = 'exclusive', about = about }, leaseMs
    local seen = ''
    if lock and lock.owner then
      local client = string.match(lock.owner, '^(%S+)/')
      if client then
        -- A token that was minted here is a number, and Lua prints 14 digits of those.
        local standing = type(lock.token) == 'string' and string.sub(lock.token, 1, 20) or string.format('%.0f', lock.token or 0)
        seen = string.format('%.9s 1 %.0f\\n', lock.mode, now) .. string.sub(client, 1, 200) .. ' '
          .. (lock.depth and string.sub(lock.depth, 1, 7) or 1) .. ' ' .. standing .. string.format(' %.0f ', now + ttl)
          .. (#lock.about < 17 and lock.about or string.match(string.sub(lock.about, 1, 320), '^[^\\n]*'))
      end
    elseif lock and not isCut then
      local named = {}
      -- 8 of this many fields are members, because at most 6 are not.
      local fields = redis.pcall('HRANDFIELD', KEYS[1], 14, 'WITHVALUES')
      for index = 1, #fields, 2 do
        local client = string.match(fields[index], '^(%S+)/')
        if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 360), '^[^\\n]*') end
      end
      local count = #named
      -- There may be more. For readers, used is their number.
      if #fields == 28 then
        count = lock.total and redis.call('HLEN', KEYS[1]) - (lock.sweep and 6 or 5) or lock.used or count
      end
      if named[1] then
        seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\\n' .. table.concat(named, '\\n')
      end
    end
    local asked = labelText and ARGV[3] .. ' ' .. labelText or ARGV[3]
    local place, soonestMs = joinQueue(KEYS[2], nil, ARGV[2], askedMode, ARGV[3], ARGV[4], limit, asked)
    return { 1, place and { 'queued', ttl, seen, place, soonestMs } or { 'full', ttl, seen } }
  end
  isFreed = isPassed == false
end
`;

// redis/lua/rotate.lua
const rotateScript2 = `
-- The lock is never free in between.
isPassedOn = true
local released, isKnown, lock = 1, false, nil
if not isFreed then released, isKnown, lock = releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1]) end
return {
  released,
  acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[2], askedMode, ARGV[3], ARGV[4], limit, labelText, KEYS[4], ARGV[8], isKnown, lock),
}
`;

// redis/lua/set-depth.lua
const setDepthScript = `
local owner, token, mode, about = readHolder(KEYS[1])
if owner ~= ARGV[1] or mode == 'exclusive' then return 0 end
redis.call('HSET', KEYS[1], 'depth', ARGV[2])
renewHolder(KEYS[1], { owner = owner, token = token, mode = mode, about = about, depth = ARGV[2] }, ARGV[3])
return 1
`;

// redis/lua/try-write.lua
const tryWriteScript = `
redis.call('EXISTS', KEYS[1], KEYS[2])
redis.call('SET', KEYS[1], redis.call('GET', KEYS[3]) or '0', 'PX', 1000)
local half = redis.pcall('INCRBY', KEYS[1], '2')
redis.call('DEL', KEYS[1])
if type(half) == 'table' then
  if not string.find(half.err, 'integer') and not string.find(half.err, 'overflow') then return half end
  half = math.huge
end
-- This raises Redis's own error, as in mint.lua.
if half > 281474976710655 then redis.call('LLEN', KEYS[3]) end
return 1
`;

// redis/lua/verify.lua
const verifyScript = `
local holder = readHolder(KEYS[1])
if holder == '' then return findMember(KEYS[1], ARGV[1]) and 1 or 0 end
return holder == ARGV[1] and 1 or 0
`;

// redis/lua/watch.lua
const watchScript = `
local lock, first = readLock(KEYS[1]), nil
if lock and lock.used == 0 then lock = nil end
if not lock then
  lock, first = grantWaiting(KEYS[1], KEYS[2], KEYS[3], nil)
  -- This raises Redis's own error.
  if isStrange then redis.call('LLEN', KEYS[2]) end
end
local isFree, member = not lock and not first, '!' .. ARGV[1]
if isFree or ARGV[3] == '0' then
  redis.call('ZREM', KEYS[2], member)
else
  local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if head and not string.find(head, '^[ !]') then redis.call('LLEN', KEYS[2]) end
  local ttl = redis.call('PTTL', KEYS[2])
  -- Changes nothing without a key, but fails here if an ACL forbids it: a queue never exists without expiry.
  if ttl < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  local score = string.format('%.0f', (now + ARGV[3]) * 1000 + ARGV[2])
  if redis.call('ZADD', KEYS[2], score, member) == 1 then
    -- Each new watcher removes some expired ones: more than are added.
    local over = redis.call('ZRANGE', KEYS[2], 100000000000000, string.format('%.0f', now * 1000), 'BYSCORE', 'LIMIT', 0, 16)
    if #over > 0 then redis.call('ZREM', KEYS[2], unpack(over)) end
  end
  if ttl < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
end
if isFree then return -1 end
local ttl = 1
if lock and not lock.isPartial then ttl = math.max(1, holderTtl(KEYS[1])) end

local seen = ''
if lock and lock.owner then
  local client = string.match(lock.owner, '^(%S+)/')
  if client then
    -- A token that was minted here is a number, and Lua prints 14 digits of those.
    local standing = type(lock.token) == 'string' and string.sub(lock.token, 1, 20) or string.format('%.0f', lock.token or 0)
    seen = string.format('%.9s 1 %.0f\\n', lock.mode, now) .. string.sub(client, 1, 200) .. ' '
      .. (lock.depth and string.sub(lock.depth, 1, 7) or 1) .. ' ' .. standing .. string.format(' %.0f ', now + ttl)
      .. (#lock.about < 17 and lock.about or string.match(string.sub(lock.about, 1, 320), '^[^\\n]*'))
  end
elseif lock and not isCut then
  local named = {}
  -- 8 of this many fields are members, because at most 6 are not.
  local fields = redis.pcall('HRANDFIELD', KEYS[1], 14, 'WITHVALUES')
  for index = 1, #fields, 2 do
    local client = string.match(fields[index], '^(%S+)/')
    if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 360), '^[^\\n]*') end
  end
  local count = #named
  -- There may be more. For readers, used is their number.
  if #fields == 28 then
    count = lock.total and redis.call('HLEN', KEYS[1]) - (lock.sweep and 6 or 5) or lock.used or count
  end
  if named[1] then
    seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\\n' .. table.concat(named, '\\n')
  end
end
return { ttl, seen }
`;

/** The text of each script. */
export const SCRIPT_TEXTS = {
  acquire: [clock, acquireScript, fence, take, holder, members, admission, queue, granting, lease, holderRenewal, anyLock, member, renewal, resizing, joining, acquiring, acquireScript2].join('\n'),
  answerRoll: [clock, answerRollScript].join('\n'),
  callRoll: [clock, callRollScript].join('\n'),
  changeRequest: [changeRequestScript].join('\n'),
  claimResult: [clock, fence, take, holder, members, admission, queue, granting, lease, holderRenewal, anyLock, member, renewal, resizing, joining, acquiring, claimResultScript].join('\n'),
  claimTick: [clock, fence, holder, lease, holderRenewal, members, anyLock, claimText, take, tickDue, jobRecord, jobInstances, jobPause, jobRuns, jobUnbegun, claimTickScript].join('\n'),
  downgrade: [clock, fence, take, holder, members, admission, queue, granting, passedOn, member, renewal, downgradeScript].join('\n'),
  endRun: [clock, fence, take, holder, members, admission, queue, granting, releasing, passedOn, jobRuns, endRunScript].join('\n'),
  exchangeClaim: [clock, tickDue, exchangeClaimScript].join('\n'),
  finishTick: [claimText, jobRuns, jobUnbegun, finishTickScript].join('\n'),
  forceRelease: [clock, fence, take, holder, members, admission, queue, granting, passedOn, forceReleaseScript].join('\n'),
  forgetResult: [clock, holder, forgetResultScript].join('\n'),
  guard: [guardScript].join('\n'),
  indexJobs: [clock, indexJobsScript].join('\n'),
  inspect: [clock, holder, lease, inspectScript].join('\n'),
  keepResult: [clock, fence, take, holder, members, admission, queue, granting, releasing, passedOn, keepResultScript].join('\n'),
  keep: [clock, queue, holder, admission, lease, keepScript].join('\n'),
  label: [clock, holder, member, holderRenewal, labelScript].join('\n'),
  lookJobs: [clock, holder, lookJobsScript].join('\n'),
  lowerPermits: [clock, fence, take, holder, members, admission, queue, granting, passedOn, anyLock, member, lowerPermitsScript].join('\n'),
  markDone: [clock, holder, markDoneScript].join('\n'),
  noteMissed: [clock, jobRecord, jobPause, jobRuns, noteMissedScript].join('\n'),
  pauseJob: [clock, jobRecord, jobPause, pauseJobScript].join('\n'),
  probeInbox: [probeInboxScript].join('\n'),
  probe: [probeScript].join('\n'),
  quarantine: [quarantineScript].join('\n'),
  raiseToken: [clock, holder, member, holderRenewal, raiseTokenScript].join('\n'),
  readResult: [readResultScript].join('\n'),
  readRoll: [readRollScript].join('\n'),
  registerJob: [clock, jobRecord, jobInstances, registerJobScript].join('\n'),
  release: [releaseScript, clock, releaseScript2, fence, take, holder, members, admission, queue, granting, releasing, passedOn, releaseScript3].join('\n'),
  renewExactly: [clock, holder, holderRenewal, members, member, renewal, queue, shortened, renewExactlyScript].join('\n'),
  renew: [renewScript, clock, holder, holderRenewal, members, member, renewal, renewScript2].join('\n'),
  resize: [clock, fence, take, holder, members, admission, queue, granting, passedOn, anyLock, resizing, resizeScript].join('\n'),
  retain: [clock, fence, take, holder, members, admission, queue, granting, releasing, passedOn, member, holderRenewal, retainScript].join('\n'),
  rotate: [clock, queue, joining, rotateScript, fence, take, holder, members, admission, granting, releasing, lease, holderRenewal, anyLock, member, renewal, resizing, acquiring, rotateScript2].join('\n'),
  setDepth: [holder, holderRenewal, setDepthScript].join('\n'),
  tryWrite: [tryWriteScript].join('\n'),
  verify: [clock, holder, member, verifyScript].join('\n'),
  watch: [clock, fence, take, holder, members, admission, queue, granting, anyLock, lease, watchScript].join('\n'),
} as const;
