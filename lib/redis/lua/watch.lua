-- Checks whether the lock is free. If not, the client becomes a watcher: see tell-watchers.lua. Asking again renews the
-- watch. If a holder has died, the waiters are granted the lock first, as with acquire.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  watcher: its client and a secret
--        2  a number below 1000, which the message returns
--        3  how long the watch lasts, in milliseconds; 0 to only check, and to end it
-- Reply  -1: the lock was free
--        { TTL, holders }: it was not. TTL of the holder in milliseconds, 1 if it is not known yet; the holders as in
--          seen-holders.lua

-- @include clock
-- @include granting
-- @include any-lock
-- @include lease

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

-- @inline seen-holders lockKey=KEYS[1]
return { ttl, seen }
