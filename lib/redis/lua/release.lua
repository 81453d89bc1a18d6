-- Frees the lock, or the share of it, that this owner has, and grants the next waiters. A waiter leaves the queue.
--
-- (This file ends without a newline. The SHA1 covers every byte, and the first version of the script had none there.)
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  owner, or '' to continue granting after a script that stopped early
--        2  if given: grants nothing
-- Reply  1: the owner held it
--        0: not the owner; no lock was changed
--        3, 2: the same as 1 and 0, and the sender has to continue granting

-- The owner's, without waiters: the usual case. A lock of another mode is not a string.
local text = redis.pcall('GET', KEYS[1])
local isOwners = type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' '
if isOwners and redis.call('EXISTS', KEYS[2]) == 0 then return redis.call('DEL', KEYS[1]) end

-- @include clock

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
  -- @inline usual-grant owner=ARGV[1] lockKey=KEYS[1] queueKey=KEYS[2] fenceKey=KEYS[3]
  if isPassed ~= nil then return 1 end
end

-- @include granting
-- @include releasing
-- @include passed-on
return passedOn((releaseLock(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], ARGV[1], text)))