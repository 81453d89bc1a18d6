-- Ends the lease with a given fencing token, whichever process holds it, and grants the next waiters. A process may
-- pass a lock between its own callers without Redis; their tokens count up from the one that Redis knows, so they
-- identify the same lease. For operators: the time it takes grows with the number of readers or permit holders.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  fencing token
--        2  if given: grants nothing
-- Reply  1: the lease was ended
--        3: the same, and the sender has to continue granting
--        0: no lease has this token; nothing was changed

-- @include clock
-- @include granting
-- @include passed-on

local meant = tonumber(ARGV[1])
local function isMeant(token)
  return math.floor(token / 32) == math.floor(meant / 32)
end

local holder, token = readHolder(KEYS[1])
if holder == false then
  -- @inline refuse lockKey=KEYS[1]
end
local wasHeld, lock = 0, nil
if holder == '' then
  local entries, owner = redis.call('HGETALL', KEYS[1]), nil
  for index = 1, #entries, 2 do
    if isMeant(tonumber(string.match(entries[index + 1], '^%d+ (%d+) %d+') or -32)) then owner = entries[index] end
  end
  if owner then wasHeld, lock = removeMember(KEYS[1], owner) end
elseif holder and isMeant(tonumber(token) or 0) then
  wasHeld = redis.call('DEL', KEYS[1])
end
if wasHeld == 0 then return 0 end
grantWaiting(KEYS[1], KEYS[2], not ARGV[2] and KEYS[3], lock)
return passedOn(1)
