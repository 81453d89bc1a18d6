-- Releases the lock of an instance and queues for it again, in one round trip: the whole of release, then the
-- whole of acquire for the next waiter, which goes to the end of the queue.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  the newest call, as for acquire
-- ARGV   Trailing ones may be left out, as for acquire.
--        1  owner
--        2  owner id of the next waiter
--        3  its lease in milliseconds
--        4  when the command is sent, as for acquire
--        5  its mode, as for acquire
--        6  the largest number of waiters the caller accepts, as for acquire
--        7  its label, as for acquire
--        8  how long ago it began, as for acquire
-- Reply  { reply of release, reply of acquire }

-- @include clock
-- @include joining

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
  -- @inline usual-grant owner=ARGV[1] lockKey=KEYS[1] queueKey=KEYS[2] fenceKey=KEYS[3]
  if isPassed then
    local lock, ttl = { owner = waiter, token = tokenText, mode = 'exclusive', about = about }, leaseMs
    -- @inline seen-holders lockKey=KEYS[1]
    local asked = labelText and ARGV[3] .. ' ' .. labelText or ARGV[3]
    local place, soonestMs = joinQueue(KEYS[2], nil, ARGV[2], askedMode, ARGV[3], ARGV[4], limit, asked)
    return { 1, place and { 'queued', ttl, seen, place, soonestMs } or { 'full', ttl, seen } }
  end
  isFreed = isPassed == false
end

-- @include granting
-- @include releasing
-- @include acquiring

-- The lock is never free in between.
isPassedOn = true
local released, isKnown, lock = 1, false, nil
if not isFreed then released, isKnown, lock = releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1]) end
return {
  released,
  acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[2], askedMode, ARGV[3], ARGV[4], limit, labelText, KEYS[4], ARGV[8], isKnown, lock),
}
