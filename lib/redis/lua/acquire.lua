-- Acquires the lock, or a share of it, if it is free and no caller waits for it. Lock, expiry and fencing token are
-- written in one step, so a crash at any point leaves nothing that does not expire. Otherwise the caller joins the queue,
-- or keeps its place there.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
--        4  the newest call: "began owner", when it began, in Redis's time in milliseconds. Only with ARGV 7
-- ARGV   Trailing ones may be left out: each costs bytes, and a string in Redis.
--        1  owner
--        2  lease in milliseconds
--        3  when the command is sent, a whole number on the sender's clock; '' to leave the queue alone
--        4  mode: exclusive, reentrant, read, write or semaphore:count:total:resized; '' for exclusive
--        5  the largest number of waiters the caller accepts; '' for 10,000
--        6  its label, if any: JSON that begins with a brace; or ''
--        7  for a call that cancels older ones: "age keep", how long ago it began, and for how long the next ones are compared
--           with it, in milliseconds
-- Reply  the fencing token: granted. Also if this owner already holds the lock, because the command was repeated; its
--          lease restarts
--        { 'busy' | 'queued' | 'full', TTL, holders }: not granted; TTL of the holder in milliseconds, and the holders
--          as seen-holders.lua writes them. After 'busy', a fourth element means: not known yet, ask again. After
--          'queued', it is the place in the queue, from 1; expired places may still count. The fifth one is then the
--          number of milliseconds until the first unexpired place expires
--        { 'full', 0, '', instance }: a call of that instance that is newer has joined before
--        { 'mismatch', TTL, mode, permits }: the resource is in use in another mode, or with another number of
--          permits

-- @include clock

-- No holder and no waiter: the usual case. Written out, because each function costs as much as a command.
local isFree = not ARGV[7] and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0
local askedMode, labelText = ARGV[4] or '', ARGV[6]
if askedMode == '' then askedMode = 'exclusive' end
if labelText == '' then labelText = nil end
if isFree and askedMode == 'exclusive' then

  -- @inline mint fenceKey=KEYS[3]
  local text = ARGV[1] .. ' ' .. string.format('%.0f', token) .. ' ' .. ARGV[2]
  redis.call('SET', KEYS[1], labelText and text .. ' ' .. labelText or text, 'PX', ARGV[2])
  return token
end

-- @include granting
-- @include acquiring

if isFree then return (take(KEYS[1], KEYS[3], nil, ARGV[1], parseRequest(askedMode, ARGV[2], labelText), ARGV[2])) end
local limit = tonumber(ARGV[5] or '') or 10000
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], askedMode, ARGV[2], ARGV[3], limit, labelText, KEYS[4], ARGV[7])
