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
-- Two grants of an older version can share the numbers of one: the token that counts up from the larger is meant.
local function isMeant(token)
  return token <= meant and math.floor(token / 64) == math.floor(meant / 64)
end

local holder, token = readHolder(KEYS[1])
if holder == false then
  -- @inline refuse lockKey=KEYS[1]
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
