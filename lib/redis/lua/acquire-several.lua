-- Takes the first lock, or a share of it, as acquire.lua does. If it is granted, does the same for the other locks, in
-- their order and without a place in a queue. Stops at the first of them that is not granted: that lock and those behind
-- it are left alone. So what it leaves behind is what the single commands would leave.
--
-- KEYS   1  lock
--        2  queue
--        3  fence, of all locks
--        and of each other lock: lock, queue
-- ARGV   1  owner
--        2  mode: exclusive, reentrant, read or write
--        3  lease in milliseconds
--        4  when the command is sent, a whole number on the sender's clock; '' to leave the queue alone
--        5  the largest number of waiters the caller accepts
--        6  its label; '' where it has none
--        and of each other lock: the owner that wants it, its label; '' where it has none
-- Reply  the fencing tokens of the locks that were granted, in their order
--        or, where the first lock was not granted, the reply of acquire.lua

-- @include clock
-- @include granting
-- @include acquiring

local function acquire(lockKey, queueKey, owner, label, sentAt, maxWaiters)
  if label == '' then label = nil end
  if redis.call('EXISTS', lockKey, queueKey) == 0 then
    return (take(lockKey, KEYS[3], nil, owner, parseRequest(ARGV[2], ARGV[3], label), ARGV[3]))
  end
  return acquireLock(lockKey, queueKey, KEYS[3], owner, ARGV[2], ARGV[3], sentAt, maxWaiters, label)
end

local reply = acquire(KEYS[1], KEYS[2], ARGV[1], ARGV[6], ARGV[4], ARGV[5])
if type(reply) == 'table' then return reply end
local tokens = { reply }
for index = 7, #ARGV, 2 do
  -- What one queue has shown does not count for the next one.
  isStrange, isWatched = false, false
  -- An error must not hide what was granted before.
  local isDone, token = pcall(acquire, KEYS[index - 3], KEYS[index - 2], ARGV[index], ARGV[index + 1], '', 0)
  if not isDone or type(token) ~= 'number' then break end
  tokens[#tokens + 1] = token
end
return tokens
